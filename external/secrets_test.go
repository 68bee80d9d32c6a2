// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// publishing has the connection details of the Silo published.
func (d *siloDesk) publishing() {
	d.t.Helper()
	d.options.ConnectionSecret = func(obj *Silo) string { return obj.Name + "-connection" }
	d.restart()
}

// secret returns the connection Secret, nil if there is none.
func (d *siloDesk) secret() *corev1.Secret {
	d.t.Helper()
	secret := &corev1.Secret{}
	err := d.client.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: "logs-connection"}, secret)
	if client.IgnoreNotFound(err) != nil {
		d.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return secret
}

func TestConnectionSecret(t *testing.T) {
	inDesk(t, external.ByToken[*Silo](), func(t *testing.T, d *siloDesk) {
		d.publishing()
		d.store.seen = busy(external.Creating)
		_, _ = d.reconcile()
		if d.secret() != nil {
			t.Error("it is published while the resource is created")
		}
		d.store.seen = nil
		d.settle()
		first := d.secret()
		want := map[string][]byte{"password": []byte(secretText), "address": []byte("store:9000/silo-1")}
		if diff := cmp.Diff(want, first.Data); diff != "" {
			t.Error(diff)
		}
		if obj := d.get(); !metav1.IsControlledBy(first, obj) {
			t.Error("the Secret is not removed with the object")
		}
		for range 3 {
			d.passes()
		}
		if got := d.secret().ResourceVersion; got != first.ResourceVersion {
			t.Error("the Secret is written again although nothing has changed")
		}
		d.store.seen = func(o *external.Observation) {
			if o.Connection != nil {
				o.Connection = map[string][]byte{"password": []byte("rotated")}
			}
		}
		d.settle()
		if diff := cmp.Diff(map[string][]byte{"password": []byte("rotated")}, d.secret().Data); diff != "" {
			t.Errorf("after a change:\n%s", diff)
		}
	})
}

// What a system returns only when it creates a resource is published before anything else can fail, and
// stays.
func TestReturnedOnce(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.store.returns, d.options.Visible = "once", time.Minute
		d.publishing()
		d.failAfterCreate()
		if got := d.secret(); got == nil || string(got.Data["secret"]) != "once" {
			t.Fatalf("the creation was not recorded, and the Secret is %v", got)
		}
		d.store.returns = ""
		d.passesTimes(10)
		kept := func(when, password string) {
			t.Helper()
			if got := d.secret().Data; string(got["secret"]) != "once" || string(got["password"]) != password || len(got) != 3 {
				t.Errorf("%s: %s", when, got)
			}
		}
		kept("the resource is up to date", secretText)
		d.restart()
		d.store.seen = func(o *external.Observation) {
			if o.Connection != nil {
				o.Connection["password"] = []byte("rotated")
			}
		}
		d.settle()
		kept("another process has published", "rotated")
		version := d.secret().ResourceVersion
		d.passesTimes(3)
		if d.secret().ResourceVersion != version {
			t.Error("the Secret is written again although nothing has changed")
		}
	}, "name") // there is no id to write
}

// What Update returns only once is published, also if it fails then, and replaces what Create has returned.
func TestReturnedByUpdate(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.store.returns = "once"
		d.publishing()
		d.settle()
		d.store.returns, d.store.renews, d.store.fail = "", "again", failing("update", errors.New("timeout"))
		d.change(func(obj *Silo) { obj.Spec.Size = "other" })
		d.fails()
		if got := string(d.secret().Data["secret"]); got != "again" {
			t.Errorf("published is %s", got)
		}
		d.store.renews, d.store.fail = "", nil
		d.restart()
		d.settle()
		if got := string(d.secret().Data["secret"]); got != "again" {
			t.Errorf("after a restart: %s", got)
		}
	})
}

// A publisher publishes to more than one Secret, besides it.
func TestPublisher(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		p := &external.Publisher[*Silo]{Public: []string{"address"}, Targets: func(obj *Silo) []external.Target {
			return []external.Target{
				{Secret: obj.Name + "-url", Keys: map[string]string{"url": "silo://:{{.password}}@{{.address}}"}},
				{ConfigMap: obj.Name, Keys: map[string]string{"address": "{{.address}}"}},
			}
		}}
		d.store.returns = "once"
		d.options.Publish, d.other = p, p.Step("Connection")
		d.publishing()
		d.settle()
		url, address := &corev1.Secret{}, &corev1.ConfigMap{}
		d.must(d.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "logs-url"}, url))
		d.must(d.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "logs"}, address))
		if string(url.Data["url"]) != "silo://:"+secretText+"@"+address.Data["address"] || string(url.Data["secret"]) != "once" || !strings.HasPrefix(address.Data["address"], "store:9000/") {
			t.Errorf("published is %s and %s", url.Data, address.Data)
		}
		if d.secret() == nil || string(d.secret().Data["secret"]) != "once" {
			t.Error("the connection Secret has not what was returned once")
		}
	})
}

// What was returned once waits in memory for a Secret that can be written. Without one, an event says
// what is lost.
func TestReturnedOnceWithoutSecret(t *testing.T) {
	onDesk(t, "of another", byName(), func(t *testing.T, d *siloDesk) {
		d.store.returns = "once"
		d.publishing()
		stranger := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "logs-connection", Annotations: map[string]string{"external.ctrlkit.dev/once": "theirs"},
		}, Data: map[string][]byte{"theirs": []byte("x")}}
		d.must(d.client.Create(t.Context(), stranger))
		for range 3 {
			d.fails()
		}
		if got := d.secret(); len(got.Data) != 1 || external.IDOf(d.get()) == "" {
			t.Errorf("the Secret of another is %v", got)
		}
		d.must(d.client.Delete(t.Context(), stranger))
		d.settle()
		if got := d.secret().Data; string(got["secret"]) != "once" || got["theirs"] != nil {
			t.Errorf("published is %s", got)
		}
	})
	onDesk(t, "not named", byName(), func(t *testing.T, d *siloDesk) {
		d.store.returns = "once"
		d.settle()
		all := slices.DeleteFunc(recorded(d), func(e string) bool { return strings.HasPrefix(e, corev1.EventTypeNormal) })
		if len(all) != 1 || !strings.Contains(all[0], "Unpublished") || !strings.HasSuffix(all[0], "named for it: secret") {
			t.Errorf("events %q", all)
		}
	})
}

func TestSecretOfOthersIsLeftAlone(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.publishing()
		theirs := map[string][]byte{"theirs": []byte("x")}
		d.must(d.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "logs-connection"}, Data: theirs}))
		if _, err := d.reconcile(); err == nil || !strings.Contains(err.Error(), "publishing the connection details") {
			t.Errorf("error %v", err)
		}
		if diff := cmp.Diff(theirs, d.secret().Data); diff != "" {
			t.Error(diff)
		}
	})
}

// What prevents a deletion because of credentials, and the remedies that the condition has.
func TestMissingCredentialsDoNotBlockDeletionSilently(t *testing.T) {
	const retain = "to delete the object and leave its resource, set the annotation policy.ctrlkit.dev/reclaim to retain"
	for name, tt := range map[string]struct {
		connector func(s *store) external.Connector[*Silo]
		fail      func(method string) error
		want      string
	}{
		"the Secret is waited for": {connector: func(s *store) external.Connector[*Silo] { return waiting{s} }, want: "Secret default/credentials"},
		"the Secret is missing, with a remedy": {
			fail: failing("connect", failure.Mark(errors.New("no credentials"), failure.WithClass(failure.ClassTerminal), failure.WithRemedy("create Secret x"))),
			want: "create Secret x",
		},
		"the credentials are wrong": {fail: failing("observe", failure.Mark(errors.New("401"), failure.WithClass(failure.ClassForbidden))), want: "401"},
		"the system is gone":        {fail: failing("observe", errors.New("no such host")), want: "no such host"},
		"the deletion is refused":   {fail: failing("delete", errors.New("409 in use")), want: "409 in use"},
	} {
		onDesk(t, name, byName(), func(t *testing.T, d *siloDesk) {
			d.settle()
			if tt.connector != nil {
				d.connector = tt.connector(d.store)
				d.restart()
			}
			d.store.fail = tt.fail
			d.delete()
			for range 7 { // the circuit breaker opens, and its wait has the remedy, too
				_, _ = d.reconcile()
				got := d.conditions()["Ready"]
				if !strings.Contains(got, retain) {
					t.Fatalf("Ready does not name the remedy: %s", got)
				}
				if !strings.Contains(got, tt.want) && !strings.Contains(got, "times in a row") {
					t.Errorf("Ready does not name the cause: %s", got)
				}
			}
			d.annotate("policy.ctrlkit.dev/reclaim", "retain")
			if _, err := d.reconcile(); err != nil || d.get() != nil || len(d.store.all) != 1 {
				t.Errorf("the remedy has no effect: %v", err)
			}
		})
	}
}

// everything is an observer that formats all that it is given, as a careless one does.
type everything struct{ text bytes.Buffer }

func (e *everything) Observe(_ context.Context, entry journal.Entry) {
	fmt.Fprintf(&e.text, "%v %+v %#v\n", entry, entry, entry.Event)
	if called, ok := entry.Event.(journal.Called); ok && called.Err != nil {
		fmt.Fprintf(&e.text, "%+v\n", called.Err)
	}
}

// The password is in the credentials that the connector reads, and in what it publishes. It must be
// nowhere else, in the life of a silo in which each call fails once.
func TestPasswordIsNowhere(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.must(d.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "credentials"}, Data: map[string][]byte{"password": []byte(secretText)},
		}))
		d.connector = waiting{d.store}
		all, logged := &everything{}, 0
		d.logger = funcr.New(func(prefix, args string) {
			logged++
			all.text.WriteString(prefix + args + "\n")
		}, funcr.Options{Verbosity: 7}) // from 8 on, client-go logs the bodies of all requests

		registry := prometheus.NewRegistry()
		series, err := metrics.New(registry, metrics.Options{})
		d.must(err)
		d.options.ConnectionSecret = func(obj *Silo) string { return obj.Name + "-connection" }
		d.engine, err = step.New(step.Options[*Silo]{
			Name: "silos", Client: d.client, APIReader: d.client, Recorder: d.recorder, Observers: []journal.Observer{d.ring, all, series, journal.Logger(d.logger)},
		}, external.New("Silo", d.connector, d.options))
		d.must(err)
		failed := map[string]bool{}
		d.store.fail = func(method string) error {
			if !failed[method] {
				failed[method] = true
				return external.Refused(errors.New("500 " + method))
			}
			return nil
		}
		published := false
		for i := range 20 {
			_, err := d.reconcile()
			secret := d.secret()
			published = published || secret != nil && string(secret.Data["password"]) == secretText
			fmt.Fprintf(&all.text, "%+v\n", err)
			if obj := d.get(); obj != nil {
				data, _ := json.Marshal(obj)
				all.text.Write(data)
				if i == 10 {
					d.change(func(obj *Silo) { obj.Spec.Size = "large" })
				}
				if i == 15 {
					d.delete()
				}
			}
			time.Sleep(time.Hour)
		}
		if d.get() != nil || len(d.store.all) > 0 || len(failed) < 5 {
			t.Fatalf("the life is not over: %v, failed %v", d.store.ids(), failed)
		}
		if !published || logged == 0 {
			t.Fatalf("published: %v, %d lines are logged: the test shows nothing", published, logged)
		}
		families, err := registry.Gather()
		d.must(err)
		fmt.Fprint(&all.text, families)
		d.searchForPassword(&all.text)
	})
}

// searchForPassword searches what was collected, the events, and the explanation.
func (d *siloDesk) searchForPassword(text *bytes.Buffer) {
	d.t.Helper()
	for len(d.recorder.Events) > 0 {
		text.WriteString(<-d.recorder.Events)
	}
	text.WriteString(d.explanation())
	if text.Len() < 10_000 {
		d.t.Errorf("only %d bytes were searched", text.Len())
	}
	for _, form := range []string{secretText, fmt.Sprint([]byte(secretText)), "aHVudGVyMi1jYW5hcnk"} {
		if i := strings.Index(text.String(), form); i >= 0 {
			d.t.Errorf("the password is in: %.300s", text.String()[max(i-200, 0):])
		}
	}
}

// explanation returns what the operator says of the Silo to "ctrlkit explain".
func (d *siloDesk) explanation() string {
	d.t.Helper()
	w := httptest.NewRecorder()
	explanation.Handler(d.ring).ServeHTTP(w, httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, explanation.Path+"?group=test.example.com&kind=Silo&namespace=default&name=logs", nil))
	if w.Code != http.StatusOK {
		d.t.Fatalf("explain answers %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// publisher has the details published to targets.
func (d *siloDesk) publisher(targets ...external.Target) {
	d.t.Helper()
	p := &external.Publisher[*Silo]{Elsewhere: true, Targets: func(*Silo) []external.Target { return slices.Clone(targets) }}
	d.options.Publish, d.other = p, p.Step("Connection")
	d.restart()
}

// What Create returns once is in the own Secret although another target is refused, also after a restart.
// Ready names the remedy, which helps literally.
func TestOnceBesideARefusedTarget(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		monitoring := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "monitoring"}}
		d.must(d.client.Create(t.Context(), monitoring))
		d.store.returns = "once"
		d.publisher(external.Target{Secret: "logs", Namespace: "monitoring"}, external.Target{Secret: "logs", Keys: map[string]string{"key": "{{.secret}}"}})
		data := func(namespace string) map[string][]byte {
			secret := &corev1.Secret{}
			if err := d.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "logs"}, secret); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			return secret.Data
		}
		for range 4 {
			_, _ = d.reconcile()
		}
		if got := data("default"); string(got["secret"]) != "once" || string(got["key"]) != "once" || data("monitoring") != nil {
			t.Fatalf("the own Secret has %s", got)
		}
		const remedy = `have its owner set the annotation publish.ctrlkit.dev/from of the Namespace monitoring to "default"`
		if got := d.conditions()["Ready"]; !strings.Contains(got, remedy) {
			t.Errorf("Ready is %s", got)
		}
		d.store.returns = ""
		d.restart()
		metav1.SetMetaDataAnnotation(&monitoring.ObjectMeta, "publish.ctrlkit.dev/from", "default")
		d.must(d.client.Update(t.Context(), monitoring))
		d.settle()
		if got := data("monitoring"); string(got["secret"]) != "once" || string(data("default")["secret"]) != "once" {
			t.Errorf("published is %s and %s", data("default"), got)
		}
	})
}

// An adopted resource whose publisher needs what only its creation returns becomes Ready when a person
// provides it, as Ready says.
func TestAdoptedWithoutOnce(t *testing.T) {
	for name, policy := range map[string]string{"managed": "", "observed": "observe"} {
		onDesk(t, name, byName(), func(t *testing.T, d *siloDesk) {
			d.store.all["found"] = &stored{id: "found"}
			d.change(func(obj *Silo) {
				obj.Annotations = map[string]string{external.IDAnnotation: "found"}
				if policy != "" {
					obj.Annotations["policy.ctrlkit.dev/allow"] = policy
				}
			})
			d.publisher(external.Target{Secret: "logs", Keys: map[string]string{"dsn": "silo://:{{.secret}}@{{.address}}"}})
			for range 4 {
				_, _ = d.reconcile()
			}
			got := d.conditions()["Ready"]
			_, patch, ok := strings.Cut(got, "kubectl -n default patch secret logs --type merge -p '")
			if patch, _, _ = strings.Cut(patch, "'"); !ok || !strings.Contains(got, "Unpublished") {
				t.Fatalf("Ready is %s", got)
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "logs"}}
			d.must(d.client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(strings.ReplaceAll(patch, "VALUE", "byhand")))))
			for range 2 {
				d.settle()
				d.restart()
			}
			d.must(d.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
			if got := d.conditions()["Ready"]; !strings.HasPrefix(got, "True") || !strings.HasPrefix(string(secret.Data["dsn"]), "silo://:byhand@") {
				t.Errorf("Ready is %s, published is %s", got, secret.Data)
			}
		})
	}
}

// A connection Secret that was restored without its owner reference has a remedy in Ready, which helps
// literally, and loses nothing.
func TestRestoredConnectionSecret(t *testing.T) {
	onDesk(t, "name", byName(), func(t *testing.T, d *siloDesk) {
		d.store.returns = "once"
		d.publishing()
		d.settle()
		d.store.returns = ""
		secret := d.secret()
		secret.OwnerReferences = nil
		d.must(d.client.Update(t.Context(), secret))
		d.restart()
		d.fails()
		got := d.conditions()["Ready"]
		if !strings.Contains(got, "allow it to be taken over with the annotation apply.ctrlkit.dev/policy: adopt") {
			t.Fatalf("Ready is %s", got)
		}
		d.must(d.client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"apply.ctrlkit.dev/policy":"adopt"}}}`))))
		d.settle()
		if got := d.secret(); string(got.Data["secret"]) != "once" || !metav1.IsControlledBy(got, d.get()) || len(got.Data) != 3 {
			t.Errorf("it has %s", got.Data)
		}
	})
}
