// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package registry has the tests that were merged into one binary, by package; see package merge.
package registry

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// Variable is the environment variable with the import path of the package whose tests run.
const Variable = "CTRLKIT_TEST_PACKAGE"

// Tests are what a package, or its external test package, has.
type Tests struct {
	Tests    []testing.InternalTest
	Fuzz     []testing.InternalFuzzTarget
	Examples []testing.InternalExample
	Main     func(*testing.M) // its TestMain, nil if it has none
}

var (
	registered = map[string]*Tests{}
	flags      = map[string][]*flag.FlagSet{} // of the package, and of its external test package
	shared     = flag.CommandLine
)

// Enter is called before the variables of the test files of a package get their values, and Leave
// after it: the flags that tests define are their own, because several packages define one of the
// same name.
func Enter(path string) bool {
	flag.CommandLine = flag.NewFlagSet(path, flag.ExitOnError)
	flags[path] = append(flags[path], flag.CommandLine)
	return true
}

// Leave is the end of Enter.
func Leave() { flag.CommandLine = shared }

// useFlags has the program take the flags of a package, and of the packages without tests that it
// uses. Where both have one, that of the package counts.
func useFlags(path string) {
	all := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	for _, set := range append(slices.Clone(flags[path]), shared) {
		set.VisitAll(func(f *flag.Flag) {
			if all.Lookup(f.Name) == nil {
				all.Var(f.Value, f.Name, f.Usage)
			}
		})
	}
	flag.CommandLine = all
}

// Add adds tests of the package with an import path.
func Add(path string, tests Tests) {
	of := registered[path]
	if of == nil {
		of = &Tests{}
		registered[path] = of
	}
	of.Tests = append(of.Tests, tests.Tests...)
	of.Fuzz = append(of.Fuzz, tests.Fuzz...)
	of.Examples = append(of.Examples, tests.Examples...)
	if tests.Main != nil {
		of.Main = tests.Main
	}
}

// Main is the TestMain of the binary: it runs the tests of the package that Variable names.
func Main(m *testing.M) {
	tests := registered[os.Getenv(Variable)]
	if tests == nil {
		fmt.Fprintf(os.Stderr, "%s=%q: this binary has no tests of such a package\n", Variable, os.Getenv(Variable))
		os.Exit(2)
	}
	useFlags(os.Getenv(Variable))
	set(m, "tests", tests.Tests)
	set(m, "fuzzTargets", tests.Fuzz)
	set(m, "examples", tests.Examples)
	if tests.Main == nil {
		os.Exit(m.Run())
	}
	tests.Main(m)
	os.Exit(int(reflect.ValueOf(m).Elem().FieldByName("exitCode").Int())) // as the main of go test does
}

// set replaces what the main of go test has found, which is nothing, in a field that is not
// exported: testing.MainStart, the only other way, is subject to change, and wants parts that are
// internal.
func set(m *testing.M, field string, value any) {
	f := reflect.ValueOf(m).Elem().FieldByName(field)
	reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}
