package gen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/dsl/checktest"
)

// largeDocument has 20 states and 40 actions, each of which is given two states.
func largeDocument() string {
	var text strings.Builder
	text.WriteString("bind controller-kit-demo/v1 controller-kit-demo/api/v1\n\nalias CronJob controller-kit-demo/v1/CronJob\n\ndecl Large for CronJob {\n    state {\n")
	for i := range 20 {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&text, "        state%d []Job {\n            labels/cronjob=${target.Name}\n            fields/.metadata.controller=${target.Name}\n            owned\n        }\n", i)
		case 1:
			fmt.Fprintf(&text, "        state%d Pod {\n            name=${target.Name}-%d-${target.Namespace}\n        }\n", i, i)
		case 2:
			fmt.Fprintf(&text, "        state%d []Pod {\n            labels/number=n%d\n            labels/cronjob=${target.Name}\n        }\n", i, i)
		case 3:
			fmt.Fprintf(&text, "        state%d []Pod {\n            namespace=*\n            fields/.spec.nodeName=${target.Spec.Schedule}\n        }\n", i)
		}
	}
	text.WriteString("    }\n\n    action {\n")
	for i := range 40 {
		fmt.Fprintf(&text, "        // Action%d does what has to be done.\n        Action%d(state%d, state%d)\n", i, i, i/2, (i/2+1)%20)
	}
	text.WriteString("    }\n}\n")
	return text.String()
}

// generateLarge goes from the text to the files.
func generateLarge(b *testing.B, dir string, loader check.Loader) []File {
	b.Helper()
	pkg, list, err := check.Check(b.Context(), check.Input{
		Dir: dir, Name: "large", Path: "controller-kit-demo/large",
		Sources: []check.Source{{File: "large.ctrlkit", Text: []byte(largeDocument())}},
	}, loader)
	if err != nil || list.HasErrors() {
		b.Fatalf("%v, %v", err, list)
	}
	files, err := Generate(pkg)
	if err != nil {
		b.Fatal(err)
	}
	return files
}

// BenchmarkLarge parses, checks and generates a document of 20 states and 40 actions: with packages that were loaded before,
// and with the go command loading them each time from a warm build cache. BenchmarkLarge/generate is the last stage alone.
func BenchmarkLarge(b *testing.B) {
	b.Run("loaded", func(b *testing.B) {
		generateLarge(b, ".", checktest.Loader{})
		for b.Loop() {
			generateLarge(b, ".", checktest.Loader{})
		}
	})
	b.Run("loading", func(b *testing.B) {
		dir := b.TempDir()
		if err := checktest.WriteModule(dir); err != nil {
			b.Fatal(err)
		}
		b.Setenv("GOFLAGS", "-mod=mod")
		b.Setenv("GOWORK", "off")
		generateLarge(b, dir, check.GoLoader{})
		for b.Loop() {
			generateLarge(b, dir, check.GoLoader{})
		}
	})
	b.Run("generate", func(b *testing.B) {
		pkg, list, err := check.Check(b.Context(), check.Input{
			Dir: ".", Name: "large", Sources: []check.Source{{File: "large.ctrlkit", Text: []byte(largeDocument())}},
		}, checktest.Loader{})
		if err != nil || list.HasErrors() {
			b.Fatalf("%v, %v", err, list)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Generate(pkg); err != nil {
				b.Fatal(err)
			}
		}
	})
}
