// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// secretName is the annotation that has the name of the connection Secret of a silo.
const secretName = "test.example.com/secret"

// runSilos runs an operator of silos for a minute, and returns what it has listed.
func runSilos(t *testing.T, config *rest.Config, system *store) *lister {
	t.Helper()
	listed := &lister{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: siloScheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			c, err := client.New(config, options)
			listed.Client = c
			return listed, err
		},
	})
	must(err)
	must(step.Control(mgr, step.Options[*Silo]{Name: "silos", SkipUnchanged: true}, external.New("Silo", external.Connector[*Silo](system), external.Options[*Silo]{
		Identity: byName(), StoresOwner: true, Poll: 100 * time.Hour, Policy: policy.Defaults{IgnoreNamespaces: true},
		ConnectionSecret: func(obj *Silo) string { return cmp.Or(obj.Annotations[secretName], obj.Name) },
	})))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	time.Sleep(time.Minute)
	synctest.Wait()
	cancel()
	must(<-ended)
	return listed
}

// A process that starts looks at no Secrets but those in which an object has what was known once, and
// finds that where the object has named another Secret meanwhile.
func TestSecretsAtARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Now: time.Now})
		if err := server.Install(silos.Definition()); err != nil {
			t.Fatal(err)
		}
		user, err := client.New(server.Config(), client.Options{Scheme: siloScheme})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(err)
		system := &store{all: map[string]*stored{}}
		const objects = 20
		for i := range objects {
			must(user.Create(t.Context(), &Silo{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("silo-", i)}, Spec: SiloSpec{Size: "small", Region: "north"},
			}))
		}
		runSilos(t, server.Config(), system)
		change := func(name, size string) {
			obj := &Silo{}
			must(user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "silo-7"}, obj))
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, secretName, name)
			obj.Spec.Size = size
			must(user.Update(t.Context(), obj))
		}
		secretIn := func(name string) string {
			secret := &corev1.Secret{}
			must(user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, secret))
			return string(secret.Data["secret"])
		}
		for _, happens := range []struct {
			what, name, size string
			renews           string
			want             string // the secret in the Secret that is named
			most             int    // Secrets that are listed
		}{
			{what: "nothing", name: "silo-7", size: "small"},
			{what: "a secret is known once, in another Secret", name: "other", size: "large", renews: "once", want: "once", most: 1},
			{what: "the first Secret is named again", name: "silo-7", size: "large", want: "once", most: 1},
			{what: "nothing again", name: "silo-7", size: "large", want: "once", most: 2},
		} {
			system.renews = happens.renews
			change(happens.name, happens.size)
			listed := runSilos(t, server.Config(), system)
			if got := secretIn(happens.name); got != happens.want {
				t.Errorf("%s: the Secret %s has %q, want %q", happens.what, happens.name, got, happens.want)
			}
			if listed.secrets > happens.most {
				t.Errorf("%s: %d Secrets were listed for %d objects, want %d", happens.what, listed.secrets, objects, happens.most)
			}
		}
	})
}
