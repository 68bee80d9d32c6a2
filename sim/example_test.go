// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

// t is the *testing.T of the test in which the code of an example stands.
var t *testing.T

// The examples that need a test are not run as examples. They are run here.
func TestExamples(test *testing.T) {
	rings.Test(test, "simulates")
	if budget := flag.Lookup("sim.budget").Value; budget.String() == "" && !rings.Exploring() {
		test.Cleanup(func() { _ = budget.Set("") }) // the value of a string takes any
		_ = budget.Set("smoke")
	}
	for name, example := range map[string]func(){
		"Run": ExampleRun, "Manager": ExampleManager, "Script": ExampleWorld, "Detour": ExampleDetour,
		"Call": ExampleProcess_Call, "HTTP": ExampleProcess_HTTP, "External": ExampleProcess_External, "Fake": ExampleFake, "Of": ExampleFake_Of,
	} {
		test.Run(name, func(sub *testing.T) {
			t = sub
			example()
		})
	}
}

// A settings object, of which the operators of the examples take care.
func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default", Labels: map[string]string{"example": "yes"}},
		Data:       map[string]string{"color": "blue"},
	}
}

// lifeOfSettings is the script of the examples that are about operators.
func lifeOfSettings(w *sim.World) {
	w.Create(settings())
	w.Settle()
	w.Delete(settings())
}

// Run tests an operator that keeps a Secret with the data of a ConfigMap: it is killed before and
// after every write, its requests are refused, its watches lag, another client takes the name of
// the Secret, and each time the world has to become what it is without that.
func ExampleRun() {
	sim.Run(t, sim.Workload{
		Operator: sim.Manager(func(mgr ctrl.Manager, _ *sim.Process) error {
			c := mgr.GetClient()
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconcile.Func(
				func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					var cm corev1.ConfigMap
					if err := c.Get(ctx, req.NamespacedName, &cm); err != nil || cm.Labels["example"] == "" {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace}}
					err := c.Get(ctx, req.NamespacedName, &secret)
					switch {
					case client.IgnoreNotFound(err) != nil:
						return ctrl.Result{}, err
					case err == nil && !metav1.IsControlledBy(&secret, &cm):
						return ctrl.Result{RequeueAfter: 30 * time.Second}, nil // until it is gone
					case err == nil && string(secret.Data["color"]) == cm.Data["color"]:
						return ctrl.Result{}, nil
					}
					secret.Data = map[string][]byte{"color": []byte(cm.Data["color"])}
					if err == nil {
						return ctrl.Result{}, c.Update(ctx, &secret)
					}
					if err := ctrl.SetControllerReference(&cm, &secret, c.Scheme()); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Create(ctx, &secret)
				}))
		}),
		Script: func(w *sim.World) {
			w.Create(settings())
			w.Settle()
			sim.Update(w, settings(), func(cm *corev1.ConfigMap) { cm.Data["color"] = "red" })
			w.Settle()
			w.Delete(settings())
		},
	}, sim.WithPairs(20))
}

// Manager makes an operator of a function that sets up controllers, like main does. An operator
// that is no manager is a function too.
func ExampleManager() {
	manager := sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
			func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				ctrl.LoggerFrom(ctx).Info("nothing to do", "at", p.Clock().Now())
				return ctrl.Result{}, nil
			}))
	})
	sim.Run(t, sim.Workload{Operator: manager, Script: lifeOfSettings})

	loop := func(ctx context.Context, p *sim.Process) error {
		c, err := client.New(p.Config(), client.Options{})
		if err != nil {
			return err
		}
		for {
			if err := c.List(ctx, &corev1.ConfigMapList{}); err != nil {
				p.Logger().Error(err, "listing")
			}
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return nil
			}
		}
	}
	sim.Run(t, sim.Workload{Operator: loop, Script: lifeOfSettings})
}

// A script acts as users do, and asks for what is in the cluster. What it finds wrong, it says
// with an error of the test, or with a panic.
func ExampleWorld() {
	sim.Run(t, sim.Workload{
		Operator: func(ctx context.Context, _ *sim.Process) error {
			<-ctx.Done()
			return nil
		},
		Script: func(w *sim.World) {
			w.Create(settings())
			sim.Update(w, settings(), func(cm *corev1.ConfigMap) { cm.Data["color"] = "red" })
			w.Settle()
			cm, ok := sim.Get(w, settings())
			if !ok || cm.Data["color"] != "red" {
				t.Errorf("the settings are %v", cm.Data)
			}
			w.Sleep(time.Hour)
			if list := sim.List(w, &corev1.SecretList{}, "default"); len(list.Items) > 0 {
				t.Errorf("%d Secrets", len(list.Items))
			}
			w.Delete(settings())
		},
	})
}

// In some runs the user changes the color and, once everything is idle, changes it back. The world
// has to be the same afterwards.
func ExampleDetour() {
	sim.Run(t, sim.Workload{
		Operator: func(ctx context.Context, _ *sim.Process) error {
			<-ctx.Done()
			return nil
		},
		Script: func(w *sim.World) {
			w.Create(settings())
			w.Settle()
			sim.Detour(w, settings(), func(cm *corev1.ConfigMap) { cm.Data["color"] = "green" })
		},
	})
}

// annotate returns an operator that writes into settings what a function returns, once.
func annotate(value func(ctx context.Context, p *sim.Process) (string, error)) func(context.Context, *sim.Process) error {
	return sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
			func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				var cm corev1.ConfigMap
				if err := c.Get(ctx, req.NamespacedName, &cm); err != nil || cm.Labels["example"] == "" || cm.Data["price"] != "" {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				price, err := value(ctx, p)
				if err != nil {
					return ctrl.Result{}, err
				}
				cm.Data["price"] = price
				return ctrl.Result{}, c.Update(ctx, &cm)
			}))
	})
}

// Call shows the simulator a call of a fake: in some runs it fails, hangs, or the process dies
// before or after it. A call that changes something has Mutates and Owner.
func ExampleProcess_Call() {
	prices := map[string]string{"blue": "3"} // a fake that is only read
	sim.Run(t, sim.Workload{
		Operator: annotate(func(ctx context.Context, p *sim.Process) (price string, err error) {
			ctx, cancel := context.WithTimeout(ctx, time.Minute) // or a call that hangs lasts for ever
			defer cancel()
			err = p.Call(ctx, sim.Call{System: "shop", Verb: "get", What: "blue"}, func() error {
				price = prices["blue"]
				return nil
			})
			return price, err
		}),
		Script: lifeOfSettings,
	})
}

// HTTP shows the simulator the requests to a fake that is an http.Handler, for operators whose
// clients take an http.Client.
func ExampleProcess_HTTP() {
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"price": "3"})
	})
	sim.Run(t, sim.Workload{
		Operator: annotate(func(ctx context.Context, p *sim.Process) (string, error) {
			c := http.Client{Transport: p.HTTP("shop", shop, nil), Timeout: time.Minute}
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shop.invalid/blue", nil)
			if err != nil {
				return "", err
			}
			response, err := c.Do(request)
			if err != nil {
				return "", err
			}
			defer response.Body.Close() //nolint:errcheck // only read from
			data, err := io.ReadAll(response.Body)
			if err != nil {
				return "", err
			}
			var answer struct{ Price string }
			err = json.Unmarshal(data, &answer)
			return answer.Price, err
		}),
		Script: lifeOfSettings,
	})
}

const finalizer = "example.com/bucket"

// keepBucket keeps a bucket for settings, by the name that it gives it.
func keepBucket(ctx context.Context, c client.Client, buckets *sim.ExternalClient, cm *corev1.ConfigMap) error {
	name := "bucket-" + string(cm.UID)
	switch {
	case cm.DeletionTimestamp != nil && len(cm.Finalizers) > 0:
		if err := buckets.Delete(ctx, name); err != nil && !errors.Is(err, sim.ErrNotFound) {
			return err
		}
		cm.Finalizers = nil
		return c.Update(ctx, cm)
	case cm.DeletionTimestamp != nil:
		return nil
	case len(cm.Finalizers) == 0:
		cm.Finalizers = []string{finalizer} // before there is something to clean up
		return c.Update(ctx, cm)
	}
	_, err := buckets.Get(ctx, name)
	if errors.Is(err, sim.ErrNotFound) {
		_, err = buckets.Create(ctx, sim.Creation{Name: name, Owner: cm.UID})
	}
	return err
}

// External is a fake system with an inventory, of which the simulator knows what belongs to which
// object: it finds what was created twice, and what is left.
func ExampleProcess_External() {
	sim.Run(t, sim.Workload{
		Externals: []sim.External{{Name: "buckets", Identity: sim.IdentityName, Latency: 100 * time.Millisecond}},
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			buckets := p.External("buckets")
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
				func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					ctx, cancel := context.WithTimeout(ctx, time.Minute) // or a call that hangs lasts for ever
					defer cancel()
					var cm corev1.ConfigMap
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, &cm); err != nil || cm.Labels["example"] == "" {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, keepBucket(ctx, mgr.GetClient(), buckets, &cm)
				}))
		}),
		Script: func(w *sim.World) {
			w.Create(settings())
			w.Settle()
			if n := len(w.Resources("buckets")); n != 1 {
				t.Errorf("%d buckets", n)
			}
			w.Delete(settings())
		},
	},
		sim.WithoutFault(sim.FaultVanish, "users do not take finalizers off"),
		sim.WithStopOn(sim.OracleNoLeak, sim.OracleOneExternal),
	)
}

// Plans are text: what a test prints can be given to it again with -sim.plan.
func Example_plans() {
	plan, err := sim.ParsePlan("seed 7; crash after write 3; delay the watch of jobs.batch by 2 from event 1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range plan.Faults {
		fmt.Printf("%s: at %d, of %q\n", f, f.At, f.Of)
	}
	plan.Seed = 0
	fmt.Println(plan)
	_, err = sim.ParsePlan("crash at write 3")
	fmt.Println(strings.NewReplacer(": ", ":\n", " or ", "\nor ").Replace(err.Error()))
	// Output:
	// crash after write 3: at 3, of ""
	// delay the watch of jobs.batch by 2 from event 1: at 1, of "jobs.batch"
	// crash after write 3; delay the watch of jobs.batch by 2 from event 1
	// plan "crash at write 3":
	// unknown fault "crash at write 3":
	// did you mean "crash before write {at}"
	// or "crash after write {at}"
	// or "crash before call {at}"
	// or "crash after call {at}"
	// or "crash inside call {at}"?
}

// The names of oracles say what holds. A violation says what does not.
func Example_oracles() {
	difference := sim.Difference{Thing: "configmaps default/settings", Path: ".data.color", Want: "red", Got: "blue"}
	fmt.Println(sim.Violation{Oracle: sim.OracleSameEnd, Text: "the world is not what it is without the fault"})
	fmt.Println(difference)
	fmt.Println(sim.Difference{Thing: difference.Thing, Want: "there"})
	// Output:
	// same-end: the world is not what it is without the fault
	// ~ configmaps default/settings data.color: got "blue", want "red"
	// - configmaps default/settings is missing
}
