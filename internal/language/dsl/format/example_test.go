// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"fmt"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/format"
)

func ExampleSource() {
	out, list := format.Source("pods.ctrlkit", []byte(`
decl Manager for Deployment {
state{pods []Pod{name = ${ target.Name }-x // by name
}}
}`))
	if list.HasErrors() {
		fmt.Println(list)
		return
	}
	fmt.Print(string(out))
	// Output:
	// decl Manager for Deployment {
	//     state {
	//         pods []Pod {
	//             name=${target.Name}-x // by name
	//         }
	//     }
	// }
}
