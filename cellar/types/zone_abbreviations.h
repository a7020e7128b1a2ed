// Abbreviations of time zones that literals may use ("2024-01-01 12:00 PST"): fixed offsets,
// whatever the date. Those with several meanings have the one that PostgreSQL's default set gives
// them.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace cellar::internal {

struct ZoneAbbreviation {
  std::string_view name;  // lower case
  int minutes_east;
  bool is_dst;
};

// Sorted by name.
inline constexpr ZoneAbbreviation kZoneAbbreviations[] = {
    {"acdt", 630, true},   {"acst", 570, false}, {"acwst", 525, false}, {"adt", -180, true},
    {"aedt", 660, true},   {"aest", 600, false}, {"akdt", -480, true},  {"akst", -540, false},
    {"amt", -240, false},  {"art", -180, false}, {"ast", -240, false},  {"awst", 480, false},
    {"azot", -60, false},  {"azt", 240, false},  {"bdt", 360, false},   {"bnt", 480, false},
    {"bot", -240, false},  {"brst", -120, true}, {"brt", -180, false},  {"bst", 60, true},
    {"btt", 360, false},   {"cdt", -300, true},  {"cest", 120, true},   {"cet", 60, false},
    {"cetdst", 120, true}, {"chadt", 825, true}, {"chast", 765, false}, {"clst", -180, false},
    {"clt", -180, false},  {"cot", -300, false}, {"cst", -360, false},  {"eat", 180, false},
    {"edt", -240, true},   {"eest", 180, true},  {"eet", 120, false},   {"eetdst", 180, true},
    {"est", -300, false},  {"fjt", 720, false},  {"fkt", -180, false},  {"get", 240, false},
    {"gft", -180, false},  {"gmt", 0, false},    {"gyt", -240, false},  {"hkt", 480, false},
    {"hst", -600, false},  {"ict", 420, false},  {"idt", 180, true},    {"irkt", 480, false},
    {"irt", 210, false},   {"ist", 120, false},  {"jst", 540, false},   {"kgt", 360, false},
    {"krat", 420, false},  {"kst", 540, false},  {"lhdt", 660, true},   {"lhst", 630, false},
    {"lint", 840, false},  {"lkt", 330, false},  {"magt", 660, false},  {"mart", -570, false},
    {"mdt", -360, true},   {"mest", 120, true},  {"mesz", 120, true},   {"met", 60, false},
    {"metdst", 120, true}, {"mez", 60, false},   {"mht", 720, false},   {"mmt", 390, false},
    {"msd", 240, true},    {"msk", 180, false},  {"mst", -420, false},  {"mut", 240, false},
    {"mvt", 300, false},   {"myt", 480, false},  {"ndt", -150, true},   {"novt", 420, false},
    {"npt", 345, false},   {"nst", -210, false}, {"nut", -660, false},  {"nzdt", 780, true},
    {"nzst", 720, false},  {"nzt", 720, false},  {"omst", 360, false},  {"pdt", -420, true},
    {"pet", -300, false},  {"pgt", 600, false},  {"pht", 480, false},   {"pkt", 300, false},
    {"pst", -480, false},  {"pyt", -180, false}, {"ret", 240, false},   {"sast", 120, false},
    {"sct", 240, false},   {"sgt", 480, false},  {"tjt", 300, false},   {"tmt", 300, false},
    {"tot", 780, false},   {"uct", 0, false},    {"ulat", 480, false},  {"ut", 0, false},
    {"utc", 0, false},     {"uyt", -180, false}, {"uzt", 300, false},   {"vet", -240, false},
    {"vlat", 600, false},  {"wast", 420, false}, {"wat", 60, false},    {"wdt", 540, false},
    {"west", 60, true},    {"wet", 0, false},    {"wetdst", 60, true},  {"wgt", -180, false},
    {"yakt", 540, false},  {"yekt", 300, false}, {"z", 0, false},       {"zulu", 0, false},
};

// Abbreviations whose offset has changed: they mean the one that the zone had under this name at
// the time, or else the last before it, or else the first behind it.
struct ChangingAbbreviation {
  std::string_view name;  // lower case
  std::string_view zone;
};

// Sorted by name.
inline constexpr ChangingAbbreviation kChangingAbbreviations[] = {
    {"amst", "Asia/Yerevan"},
    {"anast", "Asia/Anadyr"},
    {"anat", "Asia/Anadyr"},
    {"arst", "America/Argentina/Buenos_Aires"},
    {"art", "America/Argentina/Buenos_Aires"},
    {"azst", "Asia/Baku"},
    {"azt", "Asia/Baku"},
    {"ckt", "Pacific/Rarotonga"},
    {"clt", "America/Santiago"},
    {"davt", "Antarctica/Davis"},
    {"easst", "Pacific/Easter"},
    {"east", "Pacific/Easter"},
    {"fkst", "Atlantic/Stanley"},
    {"fkt", "Atlantic/Stanley"},
    {"gest", "Asia/Tbilisi"},
    {"get", "Asia/Tbilisi"},
    {"gyt", "America/Guyana"},
    {"iot", "Indian/Chagos"},
    {"irkst", "Asia/Irkutsk"},
    {"irkt", "Asia/Irkutsk"},
    {"kgt", "Asia/Bishkek"},
    {"kost", "Pacific/Kosrae"},
    {"krast", "Asia/Krasnoyarsk"},
    {"krat", "Asia/Krasnoyarsk"},
    {"lhdt", "Australia/Lord_Howe"},
    {"lint", "Pacific/Kiritimati"},
    {"lkt", "Asia/Colombo"},
    {"magst", "Asia/Magadan"},
    {"magt", "Asia/Magadan"},
    {"mawt", "Antarctica/Mawson"},
    {"msk", "Europe/Moscow"},
    {"novst", "Asia/Novosibirsk"},
    {"novt", "Asia/Novosibirsk"},
    {"nut", "Pacific/Niue"},
    {"omsst", "Asia/Omsk"},
    {"omst", "Asia/Omsk"},
    {"petst", "Asia/Kamchatka"},
    {"pett", "Asia/Kamchatka"},
    {"pyt", "America/Asuncion"},
    {"sgt", "Asia/Singapore"},
    {"tkt", "Pacific/Fakaofo"},
    {"tmt", "Asia/Ashgabat"},
    {"ulat", "Asia/Ulaanbaatar"},
    {"vet", "America/Caracas"},
    {"vlast", "Asia/Vladivostok"},
    {"vlat", "Asia/Vladivostok"},
    {"volt", "Europe/Volgograd"},
    {"yakst", "Asia/Yakutsk"},
    {"yakt", "Asia/Yakutsk"},
    {"yekt", "Asia/Yekaterinburg"}};

// Null if unknown; `lower` is in lower case.
inline const ChangingAbbreviation* FindChangingAbbreviation(std::string_view lower) {
  const auto* found = std::lower_bound(
      std::begin(kChangingAbbreviations), std::end(kChangingAbbreviations), lower,
      [](const ChangingAbbreviation& entry, std::string_view name) { return entry.name < name; });
  return found != std::end(kChangingAbbreviations) && found->name == lower ? found : nullptr;
}
inline const ZoneAbbreviation* FindZoneAbbreviation(std::string_view lower) {
  const auto* found = std::lower_bound(
      std::begin(kZoneAbbreviations), std::end(kZoneAbbreviations), lower,
      [](const ZoneAbbreviation& entry, std::string_view name) { return entry.name < name; });
  return found != std::end(kZoneAbbreviations) && found->name == lower ? found : nullptr;
}

}  // namespace cellar::internal
