// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
	"github.com/ctrlkit/ctrlkit/step"
)

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}}}

func TestMain(m *testing.M) {
	plantest.Main(operate)
	os.Exit(shared.Main(m))
}

// The operator does its work against a real control plane, whose Pods become ready, with the
// permissions of its role and no others.
func TestOperator(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t), "config/admission/policy.yaml")
	dns := newMemoryDNS()
	_, stop := start(t, c, dns)
	theirs := &corev1.ConfigMap{ObjectMeta: c.In("blog"), Data: map[string]string{"whose": "theirs"}}
	exampletest.Must(t, c.Create(t.Context(), theirs))

	c.Apply(t, "config/samples/website.yaml")
	shop := exampletest.Await(t, c, "shop", exampletest.Ready[*v1.Website])
	blog := exampletest.Await(t, c, "blog", func(site *v1.Website) bool {
		return exampletest.Reason(site, condition.Reconciling) == step.ReasonWaiting
	})
	ctrlkittest.CheckConditions(t, shop)
	ctrlkittest.CheckConditions(t, blog)
	var deployment appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shop), &deployment); err != nil || deployment.Status.AvailableReplicas != 3 {
		t.Errorf("a Website that is Ready has %d replicas available and error %v, want 3: %+v", deployment.Status.AvailableReplicas, err, deployment.Status)
	}
	if got := deployment.Spec.Template.Spec.PriorityClassName; got != c.Namespace+".shop-100" {
		t.Errorf("the Pods have the priority class %q", got)
	}
	if got := dns.target("shop.example.com"); got != "shop."+c.Namespace+".svc" {
		t.Errorf("the host points to %q", got)
	}

	checkTaken(t, c, theirs)
	checkRollOut(t, c, &deployment)
	checkRepair(t, c, shop)
	checkSwitches(t, c)
	stop()
	checkRestart(t, c)

	// What belongs to a Website goes with it.
	_, _ = start(t, c, dns)
	checkDeletion(t, c, shop)
	if got := dns.target("shop.example.com"); got != "" {
		t.Errorf("after the cleanup the host points to %q", got)
	}
}

// checkRollOut changes the credentials, and checks that the Deployment is rolled out with them.
func checkRollOut(t *testing.T, c *exampletest.Cluster, deployment *appsv1.Deployment) {
	t.Helper()
	const annotation = "web.ctrlkit.dev/credentials"
	before := deployment.Spec.Template.Annotations[annotation]
	changed := &corev1.Secret{ObjectMeta: c.In("shop-credentials"), StringData: map[string]string{"DB_PASSWORD": "changed"}}
	exampletest.Must(t, c.Update(t.Context(), changed))
	exampletest.Await(t, c, "shop", func(site *v1.Website) bool {
		exampletest.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(site), deployment))
		return exampletest.Ready(site) && deployment.Spec.Template.Annotations[annotation] != before
	})
}

// start runs the operator until it is stopped, at the latest when the test ends. It returns the
// number of its writes.
func start(t *testing.T, c *exampletest.Cluster, dns DNS) (writes *atomic.Int64, stop func()) {
	t.Helper()
	writes = &atomic.Int64{}
	config, options := c.Operator(t, "website")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, writes} })
	mgr, err := website(dns).Manager(config, options)
	exampletest.Must(t, err)
	return writes, exampletest.Run(t, mgr)
}

// counting is a transport that counts writes.
type counting struct {
	http.RoundTripper
	writes *atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}
