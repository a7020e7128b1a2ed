// Keeps the interfaces' headers compiling on their own.
#include "cellar/kv/engine.h"
