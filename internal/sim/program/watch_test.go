// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// Events are counted in each encoding, also if they come in pieces: neither what was there at first nor
// bookmarks, and one for an operator that wants the metadata only.
func TestEventsAreCounted(t *testing.T) {
	for _, accept := range []string{
		"application/json", "application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
	} {
		t.Run(accept, func(t *testing.T) {
			request, err := apiserver.NewRequest("GET", "/api/v1/secrets?watch=true", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Accept = accept
			framing := request.Framing()
			b := boundaryOf(t, "no fault")
			recorder := httptest.NewRecorder()
			w := &watching{ResponseWriter: recorder, context: t.Context(), boundary: b, kind: "secrets", first: 5, code: 200}
			w.Header().Set("Content-Type", framing.ContentType())
			var sent []byte
			for _, e := range []struct{ change, version string }{{"ADDED", "5"}, {"BOOKMARK", "6"}, {"ADDED", "7"}, {"MODIFIED", "8"}, {"DELETED", "9"}} {
				secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: e.version}}
				data, err := runtime.Encode(scheme.Codecs.LegacyCodec(schema.GroupVersion{Version: "v1"}), secret)
				if err != nil {
					t.Fatal(err)
				}
				frame := framing.Frame(apiserver.Event{Type: e.change, Resource: request.Resource, Object: bytes.TrimSpace(data)})
				sent = append(sent, frame...)
				for len(frame) > 0 {
					n := min(7, len(frame))
					if _, err := w.Write(frame[:n]); err != nil {
						t.Fatal(err)
					}
					frame = frame[n:]
				}
			}
			places, names, _, _ := b.seen()
			if diff := cmp.Diff([]string{"event ADDED secrets", "event MODIFIED secrets", "event DELETED secrets"}, names); diff != "" {
				t.Error(diff)
			}
			if places[2].At != 3 || places[2].Of != "secrets" {
				t.Errorf("got the place %+v", places[2])
			}
			if diff := cmp.Diff(sent, recorder.Body.Bytes()); diff != "" {
				t.Errorf("it did not send what it got: %s", diff)
			}
		})
	}
}

// A watch that can't continue is accepted and ends with an event, as on a server: not each client takes
// an error of HTTP for the same. The next one goes through.
func TestExpiredWatchesEndWithAnEvent(t *testing.T) {
	b := boundaryOf(t, "no fault")
	request, err := apiserver.NewRequest("GET", "/api/v1/secrets?watch=true&resourceVersion=5", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.expired[selectionOf(request)] = true
	asked := 0
	watch := func() *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		b.watch(recorder, httptest.NewRequest("GET", request.Path, nil), func(http.ResponseWriter, *http.Request, *apiserver.Request) { asked++ }, request)
		return recorder
	}
	expired := watch()
	if body := expired.Body.String(); expired.Code != http.StatusOK || !strings.HasPrefix(body, `{"type":"ERROR"`) || !strings.Contains(body, `"code":410`) || asked != 0 {
		t.Errorf("got %d %s, and the server was asked %d times", expired.Code, body, asked)
	}
	if next := watch(); next.Body.Len() > 0 || asked != 1 {
		t.Errorf("the next watch got %s, and the server was asked %d times", next.Body, asked)
	}
}
