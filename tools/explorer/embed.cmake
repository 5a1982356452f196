# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a source with the page's files as bytes: cmake -D FOLDER= -D OUTPUT= -P embed.cmake
function(add_file function)
  set(bytes "")
  foreach(name IN LISTS ARGN)
    file(READ ${FOLDER}/${name} content HEX)
    string(APPEND bytes ${content})
  endforeach()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(....................................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND source
    "std::string_view ${function}() {\n"
    "  static constexpr unsigned char bytes[] = {${bytes}};\n"
    "  return {reinterpret_cast<const char*>(bytes), sizeof bytes};\n}\n")
  set(source "${source}" PARENT_SCOPE)
endfunction()

set(source "// SPDX-License-Identifier: Apache-2.0\n#include \"tools/explorer/page_files.hpp\"\n"
  "namespace castor::tools::explorer {\n")
string(JOIN "" source ${source})
add_file(page_html page.html)
add_file(page_style explorer.css)
add_file(page_script panes.js drawing.js layout.js explorer.js)
file(WRITE ${OUTPUT} "${source}}  // namespace castor::tools::explorer\n")
