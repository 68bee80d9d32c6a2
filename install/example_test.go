// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"fmt"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/sim"
)

// manifests stands for an embed.FS: //go:embed crd
var manifests = fstest.MapFS{"crd/widgets.yaml": {Data: []byte(widgetsFile)}}

// config stands for ctrl.GetConfigOrDie().
var config = func() *rest.Config { return sim.NewServer(sim.ServerOptions{Seed: 1}).Config() }

// An operator installs its definitions before its manager starts.
func Example() {
	setUp := func(ctx context.Context, config *rest.Config) error {
		definitions, err := install.Read(manifests, "crd")
		if err != nil {
			return err
		}
		installer, err := install.New(config, install.Options{Name: "widgets-operator", Revision: "1.4.0"})
		if err != nil {
			return err
		}
		return installer.Install(ctx, definitions...)
	}
	fmt.Println(setUp(context.Background(), config()))
	// Output: <nil>
}

// A definition of a Go type, for kinds without generated files.
func ExampleFromTypes() {
	definitions, err := install.FromTypes(install.Type{
		Object: &Gadget{}, Kind: gadgetKind, ShortNames: []string{"gg"},
		Columns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Size", Type: "string", JSONPath: ".spec.size"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema := definitions[0].Spec.Versions[0].Schema.OpenAPIV3Schema
	fmt.Println(definitions[0].Name, schema.Properties["spec"].Required)
	// Output: gadgets.example.com [enabled name names size]
}

// An operator waits for a kind that another one installs.
func ExampleInstaller_Wait() {
	_ = func(ctx context.Context, config *rest.Config) error {
		installer, err := install.New(config, install.Options{Name: "widgets-operator"})
		if err != nil {
			return err
		}
		return installer.Wait(ctx, "certificates.cert-manager.io")
	}
}
