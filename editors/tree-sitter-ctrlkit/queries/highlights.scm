; Copyright The ctrlkit Authors
; SPDX-License-Identifier: Apache-2.0

["bind" "alias" "decl" "for" "state" "action"] @keyword
["in" "notin"] @keyword.operator
"=" @operator
["{" "}" "(" ")" "[" "]"] @punctuation.bracket
["," "."] @punctuation.delimiter
["${" "}"] @punctuation.special

(comment) @comment
(bind version: (word) @module source: (word) @string)
(alias name: (word) @type kind: (word) @type)
(decl name: (word) @type.definition kind: (word) @type)
(state name: (word) @variable kind: (word) @type)
(selector key: (word) @property)
(action name: (word) @function)
(action argument: (word) @variable.parameter)
(text) @string
(quoted) @string
(escape) @string.escape
(step (identifier) @variable.member)
(reference . (step (identifier) @variable.builtin))
