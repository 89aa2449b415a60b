# cmake -DNAME=... -DINPUT=... -DOUTPUT=... -P embed.cmake: one text file as a C string in a header.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "#pragma once\n\nstatic const char ${NAME}[] =\n    \"${text}\";\n")
