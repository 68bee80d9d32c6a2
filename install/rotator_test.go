// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// inWorld runs a test in a bubble, so that three years pass in no time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

func TestFirstStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start()
		if err := a.Ready(nil); err == nil {
			t.Error("it is ready before it has a certificate")
		}
		if _, err := a.GetCertificate(nil); err == nil {
			t.Error("it serves a certificate before it has one")
		}
		a.mustPass()
		must(t, a.Ready(nil))
		want := []string{"post secrets", "put mutatingwebhookconfigurations", "put validatingwebhookconfigurations", "put customresourcedefinitions"}
		if !slices.Equal(w.written, want) {
			t.Errorf("wrote %q, want %q", w.written, want)
		}
		if got := len(slices.Concat(slices.Collect(maps.Values(w.bundles))...)); got != 4 {
			t.Errorf("%d webhooks have a caBundle, want 4", got)
		}
		if s := w.secret(); s.Type != corev1.SecretTypeTLS || s.Annotations[install.ServiceAnnotation] != "shop-system/shop-webhook" {
			t.Errorf("Secret of type %s with %v", s.Type, s.Annotations)
		}

		w.written = nil // neither later passes nor other replicas write anything
		b := w.start()
		for range 3 {
			time.Sleep(day)
			a.mustPass()
			b.mustPass()
		}
		if len(w.written) > 0 || !a.leaf().Equal(b.leaf()) {
			t.Errorf("a restart wrote %q", w.written)
		}
	})
}

// A real client that trusts the caBundle can call the webhook, and one without it can't.
func TestHandshake(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start()
		a.mustPass()
		handshake := func(bundle []byte, name string) error {
			roots, err := certutil.NewPoolFromBytes(bundle)
			must(t, err)
			ours, theirs := net.Pipe()
			defer ours.Close()
			go func() {
				_ = tls.Server(ours, &tls.Config{GetCertificate: a.GetCertificate}).Handshake()
				ours.Close()
			}()
			return tls.Client(theirs, &tls.Config{RootCAs: roots, ServerName: name}).Handshake()
		}
		bundle := w.bundles["mutatingwebhookconfigurations/shop"][0]
		must(t, handshake(bundle, dnsName))
		must(t, handshake(bundle, longName))
		if err := handshake(bundle, "other-webhook.shop-system.svc"); err == nil {
			t.Error("the certificate is valid for another Service")
		}
		other := newWorld(t)
		other.start().mustPass()
		if err := handshake(other.bundles["mutatingwebhookconfigurations/shop"][0], dnsName); err == nil {
			t.Error("a stranger's authority trusts the certificate")
		}
	})
}

func TestRotation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start(), w.start()
		first, leaves, most := []byte(nil), map[string]bool{}, 0
		seen := map[string]bool{}
		for range 3 * 365 / 10 {
			a.mustPass()
			b.mustPass()
			authorities := w.authorities()
			if first == nil {
				first = authorities[0].Raw
			}
			for _, authority := range authorities {
				seen[authority.SerialNumber.String()] = true
			}
			most = max(most, len(authorities))
			leaves[a.leaf().SerialNumber.String()] = true
			time.Sleep(10 * day)
		}
		if len(seen) != 5 || most != 2 || len(leaves) < 15 || len(leaves) > 30 {
			t.Errorf("%d authorities, %d at once, %d serving certificates", len(seen), most, len(leaves))
		}
		if got := len(w.written); got > 4+len(leaves)+5*4*2 {
			t.Errorf("%d writes", got)
		}
		for object, bundles := range w.bundles {
			for _, bundle := range bundles {
				all, err := certutil.ParseCertsPEM(bundle)
				must(t, err)
				if len(all) > 2 || bytes.Equal(all[len(all)-1].Raw, first) {
					t.Errorf("%s has %d authorities, with the first one of all", object, len(all))
				}
			}
		}
	})
}

// A new authority does not sign before every webhook has had it for an interval, and while one can't
// be written the old certificate lives on.
func TestAuthorityWaitsForEveryWebhook(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start()
		a.mustPass()
		old := w.authorities()[0]
		refuse := true
		a.before = func(int) {
			if refuse {
				time.Sleep(time.Second)
				must(t, touch(w)) // so that the write of the definition is a conflict
			}
		}
		for range 66 {
			time.Sleep(5 * day)
			_ = a.pass() //nolint:errcheck // it is the webhooks that count
		}
		authorities := w.authorities()
		if len(authorities) != 2 || authorities[1].SerialNumber.Cmp(old.SerialNumber) != 0 {
			t.Fatalf("%d authorities", len(authorities))
		}
		for name, leaf := range map[string]*x509.Certificate{"served": a.leaf(), "stored": w.storedLeaf()} {
			if err := leaf.CheckSignatureFrom(old); err != nil {
				t.Errorf("the new authority has signed what is %s before all trust it: %v", name, err)
			}
		}
		refuse = false
		a.mustPass()
		a.mustPass()
		if err := w.storedLeaf().CheckSignatureFrom(old); err != nil {
			t.Errorf("the new authority signs before API servers know it: %v", err)
		}
		time.Sleep(day)
		a.mustPass()
		if err := a.leaf().CheckSignatureFrom(authorities[0]); err != nil {
			t.Errorf("the new authority does not sign: %v", err)
		}
	})
}

func touch(w *world) error {
	crd := carts()
	if err := w.user.Get(w.ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		return err
	}
	crd.Labels = map[string]string{"touched": fmt.Sprint(time.Now().Unix())}
	return w.user.Update(w.ctx, crd)
}

// A process that ends at any write leaves behind what the next one completes.
func TestCrashAtEachWrite(t *testing.T) {
	for crash := -4; crash <= 4; crash++ {
		if crash == 0 {
			continue
		}
		t.Run(fmt.Sprint(crash), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.start()
				if a.crash = crash; a.pass() == nil || !a.dead {
					t.Fatal("it has not crashed")
				}
				b := w.start()
				b.mustPass()
				if got := len(slices.Concat(slices.Collect(maps.Values(w.bundles))...)); got != 4 || b.Ready(nil) != nil {
					t.Errorf("%d webhooks have a caBundle, want 4", got)
				}
				if err := trusts(w.secret().Data["ca.crt"], b.leaf()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Of two replicas that write at the same time one wins, and both serve what it has written.
func TestRace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.start(), w.start()
		overtake := func(write int) {
			if write == 1 {
				b.mustPass()
			}
		}
		a.before = overtake
		a.mustPass()
		if created := slices.Index(w.written, "post secrets"); created < 0 || slices.Contains(w.written[created+1:], "post secrets") {
			t.Errorf("wrote %q", w.written)
		}
		w.written, a.writes = nil, 0
		time.Sleep(61 * day)
		a.mustPass()
		if want := []string{"put secrets"}; !slices.Equal(w.written, want) {
			t.Errorf("wrote %q, want %q", w.written, want)
		}
		if !a.leaf().Equal(b.leaf()) {
			t.Error("they serve different certificates")
		}
	})
}

func TestSecretOfAnother(t *testing.T) {
	named := func(data map[string][]byte, annotations map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name, Annotations: annotations}, Type: corev1.SecretTypeTLS, Data: data}
	}
	full := map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}
	for name, test := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"of cert-manager":    {named(full, map[string]string{"cert-manager.io/certificate-name": "shop"}), "made by someone else"},
		"of another Service": {named(full, map[string]string{install.ServiceAnnotation: "shop-system/other"}), "of the Service shop-system/other"},
		"empty":              {named(map[string][]byte{"tls.crt": nil, "tls.key": nil}, nil), ""},
		"ours and broken":    {named(full, map[string]string{install.ServiceAnnotation: "shop-system/shop-webhook"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				must(t, w.user.Create(w.ctx, test.secret))
				a := w.start()
				err := a.pass()
				if test.want == "" {
					must(t, err)
					return
				}
				if err == nil || a.Ready(nil) == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "RotatorOptions.Secret") {
					t.Errorf("error %v", err)
				}
				if len(w.written) > 0 {
					t.Errorf("wrote %q", w.written)
				}
				_ = a.pass() //nolint:errcheck // it is the log that counts
				if got := strings.Count(w.log.String(), test.want); got != 1 {
					t.Errorf("the log has it %d times:\n%s", got, &w.log)
				}
			})
		})
	}
}

// What is gone or broken is made again as it was, so that neither webhooks nor replicas notice.
func TestSecretIsRestored(t *testing.T) {
	for name, lose := range map[string]func(w *world) error{
		"deleted": func(w *world) error { return w.user.Delete(w.ctx, w.secret()) },
		"emptied": func(w *world) error {
			s := w.secret()
			s.Data, s.Annotations = map[string][]byte{"tls.crt": nil, "tls.key": nil}, nil
			return w.user.Update(w.ctx, s)
		},
		"another key": func(w *world) error {
			s := w.secret()
			s.Data["ca.key"] = s.Data["tls.key"]
			return w.user.Update(w.ctx, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.start()
				a.mustPass()
				before := w.secret().Data
				must(t, lose(w))
				w.written = nil
				a.mustPass()
				if after := w.secret().Data; len(w.written) != 1 || !maps.EqualFunc(before, after, bytes.Equal) {
					t.Errorf("wrote %q", w.written)
				}

				// A replica that starts before others have noticed makes it anew, and they follow.
				must(t, lose(w))
				b := w.start()
				b.mustPass()
				if a.leaf().Equal(b.leaf()) {
					t.Error("it knows what was lost")
				}
				a.mustPass()
				if a.leaf().Equal(b.leaf()) {
					t.Error("it serves a certificate that API servers may not trust yet")
				}
				config := &admissionv1.MutatingWebhookConfiguration{}
				must(t, w.user.Get(w.ctx, client.ObjectKey{Name: "shop"}, config))
				config.Webhooks[0].ClientConfig.CABundle = nil // what it still serves has to be trusted again
				must(t, w.user.Update(w.ctx, config))
				a.mustPass()
				time.Sleep(day)
				a.mustPass()
				if !a.leaf().Equal(b.leaf()) {
					t.Error("the replicas serve different certificates")
				}
			})
		})
	}
}

// A caBundle that someone has removed or replaced is written again.
func TestBundleComesBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.start()
		a.mustPass()
		for _, bundle := range [][]byte{nil, []byte("\n"), w.secret().Data["tls.crt"]} {
			config := &admissionv1.MutatingWebhookConfiguration{}
			must(t, w.user.Get(w.ctx, client.ObjectKey{Name: "shop"}, config))
			config.Webhooks[0].ClientConfig.CABundle = bundle
			a.dead = true // until its next pass, nothing can be trusted
			must(t, w.user.Update(w.ctx, config))
			a.dead = false
			a.mustPass()
			if got := w.bundles["mutatingwebhookconfigurations/shop"]; len(got) != 1 || !bytes.Equal(got[0], w.secret().Data["ca.crt"]) {
				t.Errorf("caBundle %s", got)
			}
		}
	})
}

func TestLeavesAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := client.ObjectKey{Namespace: "shop-system", Name: "other"}
		create := func(name string, annotations map[string]string, configs ...admissionv1.WebhookClientConfig) {
			config := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
			for n, c := range configs {
				config.Webhooks = append(config.Webhooks, admissionv1.ValidatingWebhook{Name: fmt.Sprintf("n%d.example.com", n), ClientConfig: c})
			}
			must(t, w.user.Create(w.ctx, config))
		}
		create("mixed", nil, at(other), admissionv1.WebhookClientConfig{URL: new("https://example.com")}, at(service))
		create("claimed", map[string]string{"cert-manager.io/inject-ca-from": "shop-system/shop"}, at(service))
		create("others", nil, at(other))
		w.options.Validating = []string{"mixed", "claimed", "others", "missing"}
		a := w.start()
		a.mustPass()
		must(t, a.Ready(nil))
		for name, want := range map[string]int{"mixed": 1, "claimed": 0, "others": 0, "shop": 0} {
			if got := len(w.bundles["validatingwebhookconfigurations/"+name]); got != want {
				t.Errorf("%s has %d caBundles, want %d", name, got, want)
			}
		}
		time.Sleep(day)
		a.mustPass()
		for _, want := range []string{
			"clientConfig 0 of ValidatingWebhookConfiguration mixed is left alone", "clientConfig 1 of ValidatingWebhookConfiguration mixed is left alone",
			"annotation cert-manager.io/inject-ca-from", "others has no webhook at the Service", "missing does not exist yet",
		} {
			if got := strings.Count(w.log.String(), want); got != 1 {
				t.Errorf("the log has %q %d times:\n%s", want, got, &w.log)
			}
		}
	})
}

// An API server of the operator gets its caBundle too. The API server in memory has no APIServices.
func TestAPIService(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.options.APIServices = []string{"v1.shop.example.com"}
		object := []byte(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.shop.example.com","resourceVersion":"1"},` +
			`"spec":{"service":{"namespace":"shop-system","name":"shop-webhook"},"group":"shop.example.com"}}`)
		config, puts := w.server.Config(), 0
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if request.URL.Path != "/apis/apiregistration.k8s.io/v1/apiservices/v1.shop.example.com" {
					return next.RoundTrip(request)
				}
				if request.Method == http.MethodPut {
					puts++
					object, _ = io.ReadAll(request.Body)
				}
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(object)), Request: request}, nil
			})
		})
		r := w.rotator(config)
		for range 2 {
			must(t, r.Pass(w.ctx))
		}
		if want := base64.StdEncoding.EncodeToString(w.secret().Data["ca.crt"]); !strings.Contains(string(object), `"spec":{"caBundle":"`+want+`"`) || puts != 1 {
			t.Errorf("after %d writes: %s", puts, object)
		}
	})
}

// Short lives are not over at once because certificates are valid a little before they are made.
func TestShortLives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.options.Interval, w.options.ServingLifetime, w.options.AuthorityLifetime = time.Second, 30*time.Second, 2*time.Minute
		a := w.start()
		a.mustPass()
		w.written = nil
		time.Sleep(15 * time.Second)
		a.mustPass()
		if len(w.written) > 0 {
			t.Errorf("wrote %q", w.written)
		}
	})
}

// The rules are enough, and without one for a webhook the replica says so and is not ready.
func TestRules(t *testing.T) {
	for _, missing := range []string{"", "mutatingwebhookconfigurations"} {
		inWorld(t, func(t *testing.T, w *world) {
			role, clusterRole := w.rotator(w.server.Config()).Rules()
			clusterRole = slices.DeleteFunc(clusterRole, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == missing })
			subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop-system", Name: "shop"}}
			meta := metav1.ObjectMeta{Namespace: "shop-system", Name: "shop"}
			policy, err := rbac.New(
				&rbacv1.Role{ObjectMeta: meta, Rules: role},
				&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "shop"}, Subjects: subjects},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Rules: clusterRole},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "shop"}, Subjects: subjects},
			)
			must(t, err)
			server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now, Authorizer: policy})
			user, err := client.New(server.Config(), client.Options{Scheme: w.user.Scheme()})
			must(t, err)
			must(t, user.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-system"}}))
			must(t, user.Create(w.ctx, carts()))
			must(t, user.Create(w.ctx, &admissionv1.MutatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Webhooks: []admissionv1.MutatingWebhook{{Name: "a.example.com", ClientConfig: at(service)}},
			}))
			config := server.Config()
			config.Impersonate.UserName = "system:serviceaccount:shop-system:shop"
			r := w.rotator(config)
			err = r.Pass(w.ctx)
			if missing == "" {
				must(t, err)
			} else if ready := r.Ready(nil); ready == nil || !strings.Contains(ready.Error(), "MutatingWebhookConfiguration shop") {
				t.Errorf("ready: %v", ready)
			}
			time.Sleep(61 * day)
			must(t, user.Get(w.ctx, client.ObjectKeyFromObject(carts()), carts()))
			if err := r.Pass(w.ctx); (err == nil) != (missing == "") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestWrongRotatorOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options install.RotatorOptions
		want    string
	}{
		"no service":      {install.RotatorOptions{Mutating: []string{"a"}}, "RotatorOptions.Service"},
		"no namespace":    {install.RotatorOptions{Service: client.ObjectKey{Name: "a"}, Mutating: []string{"a"}}, "RotatorOptions.Service"},
		"no webhooks":     {install.RotatorOptions{Service: service}, "RotatorOptions.Validating"},
		"short authority": {install.RotatorOptions{Service: service, Mutating: []string{"a"}, AuthorityLifetime: 100 * day}, "three times"},
		"short serving":   {install.RotatorOptions{Service: service, Mutating: []string{"a"}, ServingLifetime: time.Minute}, "20 intervals"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := install.NewRotator(apiserver.New(apiserver.Options{}).Config(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
