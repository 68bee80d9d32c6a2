// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package checktest

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/tools/txtar"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// Documents returns every document of the repository and its tests by a name, right and wrong ones.
func Documents() (map[string]string, error) {
	module, err := thisModule()
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, root := range []string{"internal", "examples"} {
		err := filepath.WalkDir(filepath.Join(module, root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			switch filepath.Ext(path) {
			case ".ctrlkit":
				all[path] = string(text)
			case ".txtar":
				for _, file := range txtar.Parse(text).Files {
					if filepath.Ext(file.Name) == ".ctrlkit" || file.Name == "in" || file.Name == "out" {
						all[path+":"+file.Name] = diag.Unquoted(string(file.Data))
					}
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, e := range diag.Codes() {
		all[string(e.Code)] = e.Example
	}
	all["escapes"] = `decl A for B { state { a B { name="\" \\ \$ \n \t \u00e9 \U0001F600" } } }`
	return all, nil
}
