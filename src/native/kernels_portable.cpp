#define SLIMFL_LEVEL portable
#include "level.h"
