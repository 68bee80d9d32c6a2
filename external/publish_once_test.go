// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
)

// kubectlPatch is a command in a message.
var kubectlPatch = regexp.MustCompile(`kubectl -n (\S+) patch (secret|configmap) (\S+) --type merge -p '([^']*)'`)

// follow runs the command that an error names, literally, with a value for VALUE.
func (w *world) follow(err error, value string) {
	w.t.Helper()
	if err == nil {
		w.t.Fatal("no error")
	}
	found := kubectlPatch.FindStringSubmatch(err.Error())
	if found == nil {
		w.t.Fatalf("no command in %v", err)
	}
	var obj client.Object = &corev1.Secret{}
	if found[2] == "configmap" {
		obj = &corev1.ConfigMap{}
	}
	obj.SetNamespace(found[1])
	obj.SetName(found[3])
	w.must(w.client.Patch(w.ctx, obj, client.RawPatch(types.MergePatchType, []byte(strings.ReplaceAll(found[4], "VALUE", value))), client.FieldOwner("kubectl-patch")))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// secret reads a Secret.
func (w *world) secret(namespace, name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, s))
	return s
}

// consent has the Namespace shop allow others to publish to it.
func (w *world) consent(from string) {
	w.t.Helper()
	w.must(w.client.Update(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"publish.ctrlkit.dev/from": from}}}))
}

// unpublished checks that a failure is that of a key which can't be made.
func (w *world) unpublished(what string, err error, says string) {
	w.t.Helper()
	if err == nil || failure.Classify(err).Reason != "Unpublished" || !strings.Contains(err.Error(), says) {
		w.t.Errorf("%s: error %v, want %s", what, err, says)
	}
}

var (
	u    = map[string]string{"user": "u"}
	once = map[string]string{"key": "k"}
)

// A chosen key of the name of a detail that was known once neither replaces it nor is taken for it.
func TestChosenKeyOfTheNameOfOnce(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}})
	choose := func(keys map[string]string) {
		w.targets[0].Keys = keys
		w.restart()
	}
	w.expect("once", w.publish(u, once), "Secret default/a: dsn=u:k key=k")
	choose(map[string]string{"key": "{{.user}}"})
	w.expect("the key is something else", w.publish(u, nil), "Secret default/a: key=u once.key=k")
	choose(map[string]string{"key": "{{.user}}", "dsn": `{{.user}}:{{index . "key"}}`})
	w.expect("both", w.publish(u, nil), "Secret default/a: dsn=u:k key=u once.key=k")
	w.expect("rotated", w.publish(u, map[string]string{"key": "n"}), "Secret default/a: dsn=u:n key=u once.key=n")
	choose(map[string]string{"key": "{{.key}}"})
	w.expect("the key is the detail", w.publish(u, nil), "Secret default/a: key=n")
	choose(map[string]string{"key": "{{.user}}", "once.key": "{{.user}}"})
	w.expect("both names are taken", w.publish(u, nil), "Secret default/a: key=u once.key=u once.once.key=n")
	w.targets[0].Secret = "b"
	choose(map[string]string{"dsn": "{{.key}}"})
	w.expect("another Secret", w.publish(u, nil), "Secret default/b: dsn=n key=n")
	w.writes.Store(0)
	w.expect("again", w.publish(u, nil), "Secret default/b: dsn=n key=n")
	if n := w.writes.Load(); n != 0 {
		t.Errorf("%d writes without a change", n)
	}
}

// Secrets of older versions name details only, and a key that was chosen for something else has lost its
// detail.
func TestOnceOfOlderVersions(t *testing.T) {
	for name, tt := range map[string]struct {
		keys map[string]string
		data string
		want string
	}{
		"beside chosen keys":                 {map[string]string{"dsn": "{{.user}}:{{.key}}"}, "k", "dsn=u:k key=k"},
		"without keys":                       {nil, "k", "key=k user=u"},
		"the key is chosen for it":           {map[string]string{"key": "{{.key}}"}, "k", "key=k"},
		"the key is chosen now for another":  {map[string]string{"key": "{{.user}}"}, "k", "key=u once.key=k"},
		"the key was something else already": {map[string]string{"key": "{{.user}}"}, "u", "key=u"},
	} {
		w := newWorld(t, external.Target{Secret: "a", Keys: tt.keys})
		db := &Database{}
		w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "db"}, db))
		w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: "a", Annotations: map[string]string{"external.ctrlkit.dev/once": "key"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(db, testkind.Version.WithKind("Database"))},
		}, Data: map[string][]byte{"key": []byte(tt.data)}})
		w.expect(name, w.publish(u, nil), "Secret default/a: "+tt.want)
	}
}

// What is known only now is written to a Secret of the object, whatever happens to other targets.
func TestOnceIsKeptFirst(t *testing.T) {
	own := external.Target{Secret: "own", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}}
	for name, tt := range map[string]struct {
		targets []external.Target
		before  func(w *world)
		want    string
	}{
		"no consent":        {targets: []external.Target{{Secret: "a", Namespace: "shop"}, own}},
		"no Namespace":      {targets: []external.Target{{Secret: "a", Namespace: "nowhere"}, own}},
		"no name":           {targets: []external.Target{{}, own}},
		"twice":             {targets: []external.Target{own, own}},
		"an invalid name":   {targets: []external.Target{{Secret: "A_"}, own}},
		"a wrong template":  {targets: []external.Target{{Secret: "a", Keys: map[string]string{"a": "{{"}}, own}},
		"secret in the map": {targets: []external.Target{{ConfigMap: "a", Keys: map[string]string{"a": "{{.key}}"}}, own}},
		"of a stranger": {targets: []external.Target{{Secret: "a"}, own}, before: func(w *world) {
			w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		}, want: "Secret default/a: \n"},
		"of a stranger elsewhere": {targets: []external.Target{{Secret: "a", Namespace: "shop"}, own}, before: func(w *world) {
			w.consent("default")
			w.must(w.client.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}))
		}, want: "Secret shop/a: "},
	} {
		w := newWorld(t, tt.targets...)
		if tt.before != nil {
			tt.before(w)
		}
		kept := func(when string, err error, key string) {
			t.Helper()
			if err == nil || failure.Classify(err).Class != failure.ClassTerminal && failure.Classify(err).Class != failure.ClassInvalid {
				t.Errorf("%s: %s: error %v", name, when, err)
			}
			if data := w.secret("default", "own").Data; string(data["key"]) != key || string(data["dsn"]) != "u:"+key || len(data) != 2 {
				t.Errorf("%s: %s: the own Secret has %s", name, when, data)
			}
			if got := w.published(); tt.want != "" && !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s: published is %s", name, when, got)
			}
		}
		kept("once", w.publish(u, once), "k")
		w.restart()
		kept("after a restart", w.publish(u, nil), "k")
		kept("rotated", w.publish(u, map[string]string{"key": "n"}), "n")
		w.restart()
		kept("rotated, after a restart", w.publish(u, nil), "n")
	}
}

// A Namespace that does not consent any more keeps what it has; what is published in that of the object
// changes.
func TestConsentWithdrawn(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"}, external.Target{Secret: "own"}, external.Target{ConfigMap: "host", Keys: map[string]string{"host": "{{.host}}"}})
	w.consent("default")
	w.expect("allowed", w.publish(values, nil), "Secret default/own: host=h password=p4ss user=u", "Secret shop/a: host=h password=p4ss user=u", "ConfigMap default/host: host=h")
	w.consent("other")
	err := w.publish(map[string]string{"host": "i", "password": "n3w"}, once)
	if c := failure.Classify(err); c.Reason != "WrongTarget" || !strings.Contains(err.Error(), `have its owner add "default" to the annotation publish.ctrlkit.dev/from of the Namespace shop`) {
		t.Errorf("error %v", err)
	}
	want := []string{"Secret default/own: host=i key=k password=n3w", "Secret shop/a: host=h password=p4ss user=u", "ConfigMap default/host: host=i"}
	w.expect("withdrawn", nil, want...)
	w.restart()
	w.targets = w.targets[:2]
	if err := w.publish(map[string]string{"host": "i", "password": "n3w"}, nil); err == nil {
		t.Error("no error")
	}
	w.expect("another target has left", nil, want[:2]...)
	w.targets = w.targets[1:]
	w.expect("it is no target", w.publish(map[string]string{"host": "i", "password": "n3w"}, nil), want[0])
}

// Who may write Secrets in a namespace that consents puts nothing into another one.
func TestNothingComesFromElsewhere(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"}, external.Target{Secret: "own"}, external.Target{Secret: "dsn", Keys: map[string]string{"dsn": "{{.evil}}"}})
	w.consent("default")
	db := &Database{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "db"}, db))
	forged := func(note string, references ...metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "a", OwnerReferences: references, Labels: map[string]string{"publish.ctrlkit.dev/of": string(db.UID)},
			Annotations: map[string]string{"external.ctrlkit.dev/once": note},
		}, Data: map[string][]byte{"host": []byte("evil.example.com"), "evil": []byte("x")}}
	}
	for name, secret := range map[string]*corev1.Secret{
		"a label":                 forged("host=host,evil=evil"),
		"a label, as before":      forged("host,evil"),
		"a controller":            forged("host=host,evil=evil", *metav1.NewControllerRef(db, testkind.Version.WithKind("Database"))),
		"a controller, as before": forged("host,evil", *metav1.NewControllerRef(db, testkind.Version.WithKind("Database"))),
	} {
		w.must(w.client.Create(w.ctx, secret))
		if err := w.publish(u, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := w.secret("default", "own").Data; len(got) != 1 || len(w.secret("default", "dsn").Data) > 0 {
			t.Errorf("%s: the own Secret has %s", name, got)
		}
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, &corev1.Secret{ObjectMeta: secret.ObjectMeta})))
	}
}

// Without a Secret in the namespace of the object, one elsewhere keeps what was known once, for itself.
func TestOnceElsewhere(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"}, external.Target{Secret: "b", Namespace: "shop", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}})
	w.consent("*")
	want := []string{"Secret shop/a: key=k user=u", "Secret shop/b: dsn=u:k"}
	w.expect("once", w.publish(u, once), want...)
	w.restart()
	w.unpublished("after a restart", w.publish(u, nil), "Secret shop/b: key dsn needs key")
	w.expect("nothing is lost", nil, want...)
}

// A person provides what the system never returns, as the message says.
func TestProvidedByHand(t *testing.T) {
	for name, tt := range map[string]struct {
		targets []external.Target
		want    []string
		rotated []string
	}{
		"a Secret": {
			[]external.Target{{Secret: "a", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}}, {Secret: "b", Keys: map[string]string{"key": "{{.key}}"}}, {Secret: "c"}},
			[]string{"Secret default/a: dsn=u:x key=x", "Secret default/b: key=x", "Secret default/c: key=x user=u"},
			[]string{"Secret default/a: dsn=u:n key=n", "Secret default/b: key=n", "Secret default/c: key=n user=u"},
		},
		"the name is taken": {
			[]external.Target{{Secret: "a", Keys: map[string]string{"key": "{{.user}}", "dsn": "{{.user}}:{{.key}}"}}},
			[]string{"Secret default/a: dsn=u:x key=u once.key=x"},
			[]string{"Secret default/a: dsn=u:n key=u once.key=n"},
		},
		"the key is the detail": {
			[]external.Target{{Secret: "a", Keys: map[string]string{"key": "{{.key}}"}}},
			[]string{"Secret default/a: key=x"},
			[]string{"Secret default/a: key=n"},
		},
		"a ConfigMap": {
			[]external.Target{{ConfigMap: "a", Keys: map[string]string{"user": "{{.user}}", "host": "{{.host}}"}}},
			[]string{"ConfigMap default/a: host=x user=u"},
			[]string{"ConfigMap default/a: host=x user=u"},
		},
		"elsewhere": {
			[]external.Target{{Secret: "a", Namespace: "shop", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}}},
			[]string{"Secret shop/a: dsn=u:x key=x"},
			[]string{"Secret shop/a: dsn=u:n key=n"},
		},
	} {
		w := newWorld(t, tt.targets...)
		w.public = []string{"user", "host"}
		w.consent("default")
		w.restart()
		err := w.publish(u, nil)
		w.unpublished(name, err, "which is not known; if the system never returns it, provide it: kubectl")
		w.follow(err, "x")
		w.expect(name, w.publish(u, nil), tt.want...)
		w.restart()
		w.writes.Store(0)
		w.expect(name+", after a restart", w.publish(u, nil), tt.want...)
		if n := w.writes.Load(); n != 0 {
			t.Errorf("%s: %d writes without a change", name, n)
		}
		w.expect(name+", rotated", w.publish(u, map[string]string{"key": "n"}), tt.rotated...)
	}
}

// A key that a person has written counts, until the detail is known. What was published before, and is
// not known any more, does not.
func TestFinishedKeyByHand(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}}, external.Target{Secret: "b"})
	w.unpublished("nothing", w.publish(u, nil), "key dsn needs key")
	write := func(value string) {
		w.must(w.client.Patch(w.ctx, w.secret("default", "a"), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"dsn":"`+value+`"}}`)), client.FieldOwner("kubectl-patch")))
	}
	write("mine")
	for range 2 {
		w.expect("by hand", w.publish(u, nil), "Secret default/a: dsn=mine", "Secret default/b: user=u")
		w.restart()
	}
	w.expect("known", w.publish(map[string]string{"user": "u", "key": "k"}, nil), "Secret default/a: dsn=u:k", "Secret default/b: key=k user=u")
	w.unpublished("forgotten", w.publish(u, nil), "key dsn needs key")
	w.expect("kept", nil, "Secret default/a: dsn=u:k", "Secret default/b: user=u")
	write("again")
	w.expect("by hand again", w.publish(u, nil), "Secret default/a: dsn=again", "Secret default/b: user=u")
	// Nothing that a person adds is published unless a template needs it.
	w.must(w.client.Patch(w.ctx, w.secret("default", "a"), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"extra":"x"}}`))))
	w.expect("more by hand", w.publish(u, nil), "Secret default/a: dsn=again extra=x", "Secret default/b: user=u")
}

// A Secret that was restored without its owner reference keeps what it has.
func TestRestoredSecret(t *testing.T) {
	for name, label := range map[string]bool{"with its labels": true, "without": false} {
		w := newWorld(t, external.Target{Secret: "a", Keys: map[string]string{"dsn": "{{.user}}:{{.key}}"}})
		w.expect(name, w.publish(u, once), "Secret default/a: dsn=u:k key=k")
		s := w.secret("default", "a")
		w.must(w.client.Delete(w.ctx, s))
		s.ObjectMeta = metav1.ObjectMeta{Name: "a", Labels: s.Labels, Annotations: s.Annotations}
		if !label {
			s.Labels = nil
		}
		w.create(s)
		w.restart()
		if err := w.publish(u, nil); err == nil || !strings.Contains(err.Error(), "with the annotation apply.ctrlkit.dev/policy: adopt") {
			t.Errorf("%s: error %v", name, err) // without managed fields, it looks like a copy
		}
		s = w.secret("default", "a")
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "apply.ctrlkit.dev/policy", "adopt")
		w.must(w.client.Update(w.ctx, s))
		w.expect(name, w.publish(u, nil), "Secret default/a: dsn=u:k key=k")
		w.expect(name+", rotated", w.publish(u, map[string]string{"key": "n"}), "Secret default/a: dsn=u:n key=n")
	}
}

// A namespace that the cache does not have stops no other target.
func TestUnreadableTarget(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"}, external.Target{Secret: "own"})
	w.consent("*")
	w.hidden = "shop"
	if err := w.publish(u, once); err == nil || !strings.Contains(err.Error(), "reading Secret shop/a: unknown namespace for the cache") {
		t.Errorf("error %v", err)
	}
	w.expect("the other", nil, "Secret default/own: key=k user=u")
}

// A Namespace that is being deleted is waited for, and stops no other target.
func TestTerminatingNamespace(t *testing.T) {
	w := newWorld(t, external.Target{Secret: "a", Namespace: "shop"}, external.Target{Secret: "own"})
	w.must(w.client.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "held", Annotations: map[string]string{"publish.ctrlkit.dev/from": "*"}, Finalizers: []string{"test.example.com/held"}}}
	w.must(w.client.Create(w.ctx, held))
	w.must(w.client.Delete(w.ctx, held))
	w.targets[0].Namespace = "held"
	w.expect("terminating", w.publish(u, once), "Secret default/own: key=k user=u")
	db := &Database{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "db"}, db))
	if got := readyOfDatabase(db); !strings.Contains(got, "Namespace held to be gone, which is being deleted, for Secret held/a") {
		t.Errorf("Ready is %s", got)
	}
}

func readyOfDatabase(db *Database) string {
	for _, c := range db.Status.Conditions {
		if c.Type == "Ready" {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}
