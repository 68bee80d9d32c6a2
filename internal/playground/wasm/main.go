// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build js

// Command wasm gives the page its functions: ctrlkit.check(document, definitions) and
// ctrlkit.format(document). It takes the catalog from ctrlkit.catalog.
package main

import (
	"context"
	"encoding/json"
	"syscall/js"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/catalog"
	"github.com/ctrlkit/ctrlkit/internal/playground"
)

func main() {
	page := js.Global().Get("ctrlkit")
	kinds := catalog.New([]byte(page.Get("catalog").String()))
	page.Set("check", js.FuncOf(func(_ js.Value, args []js.Value) any {
		result, err := playground.Check(context.Background(), kinds, args[0].String(), args[1].String())
		if err != nil {
			return js.Global().Get("Error").New(err.Error())
		}
		text, err := json.Marshal(result)
		if err != nil {
			return js.Global().Get("Error").New(err.Error())
		}
		return js.Global().Get("JSON").Call("parse", string(text))
	}))
	page.Set("format", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return playground.Format(args[0].String())
	}))
	page.Call("ready")
	select {} // the page calls the functions
}
