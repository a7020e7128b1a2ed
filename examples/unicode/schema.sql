-- The tables of the guided tour: Unicode's characters and the ISO codes of countries and languages.
-- tools/quickstart-data writes one CSV file for each, with the columns in this order.

CREATE TABLE categories (
  code     char(2) PRIMARY KEY,
  name     text NOT NULL UNIQUE,
  class    char(1) NOT NULL
);

CREATE TABLE scripts (
  code     char(4) PRIMARY KEY,
  name     text NOT NULL UNIQUE,
  number   smallint UNIQUE
);

CREATE TABLE blocks (
  first    int PRIMARY KEY,
  last     int NOT NULL UNIQUE,
  name     text NOT NULL UNIQUE
);

CREATE TABLE characters (
  cp            int PRIMARY KEY,
  ch            text,                       -- NULL for surrogates and U+0000
  name          text NOT NULL,
  category      char(2) NOT NULL,           -- looked up in categories
  combining     smallint NOT NULL,
  bidi          varchar(3) NOT NULL,
  decomposition text,
  digit         smallint,
  digit_any     smallint,
  fraction      text,
  value         numeric(20, 6),
  mirrored      boolean NOT NULL,
  old_name      text,
  comment       text,
  upper_cp      int,
  lower_cp      int,
  title_cp      int,
  script        char(4),                    -- looked up in scripts
  block         int,                        -- looked up in blocks
  age           numeric(4, 1)
);
CREATE UNIQUE INDEX characters_by_ch ON characters (ch);
CREATE INDEX characters_by_name ON characters (name);
CREATE INDEX characters_by_category ON characters (category, cp);
CREATE INDEX characters_by_script ON characters (script, age DESC NULLS LAST, cp);
CREATE INDEX characters_by_value ON characters (value DESC NULLS LAST, cp);

CREATE TABLE properties (
  property  text,
  first     int,
  last      int NOT NULL,
  PRIMARY KEY (property, first)
);
CREATE INDEX properties_by_first ON properties (first);

CREATE TABLE aliases (
  cp        int,
  alias     text,
  kind      text NOT NULL,
  PRIMARY KEY (cp, alias)
);
CREATE INDEX aliases_by_alias ON aliases (alias);

CREATE TABLE countries (
  code          char(2) PRIMARY KEY,
  alpha_3       char(3) NOT NULL UNIQUE,
  number        smallint NOT NULL UNIQUE,
  name          text NOT NULL,
  official_name text,
  common_name   text,
  flag          text NOT NULL
);
CREATE INDEX countries_by_name ON countries (name);

CREATE TABLE subdivisions (
  code      varchar(6) PRIMARY KEY,
  country   char(2) NOT NULL,               -- looked up in countries
  name      text NOT NULL,
  type      text NOT NULL,
  parent    varchar(6)                      -- another subdivision
);
CREATE INDEX subdivisions_by_country ON subdivisions (country, name);
CREATE INDEX subdivisions_by_parent ON subdivisions (parent);

CREATE TABLE languages (
  code          char(3) PRIMARY KEY,
  alpha_2       char(2) UNIQUE,
  bibliographic char(3) UNIQUE,
  name          text NOT NULL,
  inverted_name text,
  scope         char(1) NOT NULL,
  type          char(1) NOT NULL
);
CREATE INDEX languages_by_name ON languages (name);

CREATE TABLE currencies (
  code      char(3) PRIMARY KEY,
  number    smallint NOT NULL UNIQUE,
  name      text NOT NULL
);
