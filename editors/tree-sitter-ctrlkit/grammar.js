// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// The grammar of docs/language.md for editors, which parse text with mistakes too. It is not as strict
// as the parser is: a value may have spaces in it, and any word is a name.

/// <reference types="tree-sitter-cli/dsl" />

// lines are items of which each ends its line.
const lines = ($, item) => seq(optional(item), repeat(seq($._end, optional(item))));
const block = ($, item) => seq("{", lines($, item), "}");

module.exports = grammar({
  name: "ctrlkit",
  extras: ($) => [/[ \t\r]/, $.comment],
  word: ($) => $.word,

  rules: {
    document: ($) => lines($, choice($.bind, $.alias, $.decl)),

    bind: ($) => seq("bind", field("version", $.word), field("source", $.word)),
    alias: ($) => seq("alias", field("name", $.word), field("kind", $.word)),
    decl: ($) => seq("decl", field("name", $.word), "for", field("kind", $.word), block($, choice($.states, $.actions))),

    states: ($) => seq("state", block($, $.state)),
    state: ($) => seq(field("name", $.word), optional($.list), field("kind", $.word), block($, $.selector)),
    list: () => seq("[", "]"),
    selector: ($) => seq(field("key", $.word), optional(choice(
      seq("=", optional(field("value", $._value))),
      seq(field("operator", choice("in", "notin")), "(", field("value", $._value), repeat(seq(",", field("value", $._value))), ")"),
    ))),

    actions: ($) => seq("action", block($, $.action)),
    action: ($) => seq(field("name", $.word), "(", repeat($._end), optional($._arguments), ")"),
    _arguments: ($) => seq($._argument, repeat(seq(",", repeat($._end), $._argument)), optional(seq(",", repeat($._end)))),
    _argument: ($) => seq(field("argument", $.word), repeat($._end)),

    _value: ($) => choice($.bare, $.quoted),
    bare: ($) => repeat1(choice($.text, $.reference)),
    text: () => /[^\s{}()\[\],="$'`\\]+/,
    quoted: ($) => seq('"', repeat(choice($._characters, $.escape, $.reference)), token.immediate('"')),
    _characters: () => token.immediate(prec(1, /[^"\\$\n]+/)),
    escape: () => token.immediate(/\\(["\\$nt]|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/),
    reference: ($) => seq("${", $.step, repeat(seq(".", $.step)), "}"),
    step: ($) => seq($.identifier, optional(seq("[", "]"))),
    identifier: () => /[A-Za-z0-9_]+/,

    word: () => /[^\s{}()\[\],="$]+/,
    comment: () => token(prec(1, /\/\/[^\n]*/)),
    _end: () => "\n",
  },
});
