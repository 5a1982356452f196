// SPDX-License-Identifier: Apache-2.0
// The page's files, which the build embeds (embed.cmake).
#pragma once

#include <string_view>

namespace castor::tools::explorer {

std::string_view
page_html();  ///< page.html: has each of the marks /*STYLE*/, /*SCRIPT*/, /*MODEL*/ once
std::string_view page_style();   ///< explorer.css
std::string_view page_script();  ///< the scripts, one after the other

}  // namespace castor::tools::explorer
