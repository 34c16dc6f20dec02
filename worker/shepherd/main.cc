// xce_shepherd: started by the worker, never by people. `xce_shepherd launcher FD DATA_DIR` forks
// shepherds on request.
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "worker/shepherd/shepherd.h"

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "launcher") == 0) {
    return xce::worker::launcher_main(argv[3], std::atoi(argv[2]));
  }
  std::cerr << "xce_shepherd is started by the worker, xcecd; run xcecd --help instead\n";
  return 2;
}
