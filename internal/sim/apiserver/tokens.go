// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
)

var (
	accountsStorage = schema.GroupResource{Resource: "serviceaccounts"}
	nodesStorage    = schema.GroupResource{Resource: "nodes"}
)

// tokens issues tokens of ServiceAccounts, as their subresource token does, and checks them.
type tokens struct{ *registry }

// isToken reports whether a subresource of a kind issues tokens.
func (k *kind) isToken(subresource string) bool {
	return k.storage == accountsStorage && subresource == "token"
}

// tokenRequests is the kind of the subresource token. Its objects are not stored.
var tokenRequests = &kind{
	gvr: authenticationv1.SchemeGroupVersion.WithResource("tokenrequests"), gvk: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
	namespaced: true, review: true,
}

// defaultExpiration and the limits of an expiration are those of the real server, in seconds.
const (
	defaultExpiration  = 60 * 60
	shortestExpiration = 10 * 60
	longestExpiration  = 1 << 32
)

// create answers the creation of a token.
func (t tokens) create(k *kind, r *Request) *Response {
	w := &writeContext{request: r, kind: tokenRequests}
	content, failure := w.decode(r.Body)
	if failure != nil {
		return failure.response()
	}
	tracked := &unstructured.Unstructured{Object: content}
	if spec, ok := content["spec"].(map[string]any); ok && spec["expirationSeconds"] == nil {
		spec["expirationSeconds"] = int64(defaultExpiration)
	}
	if failure := w.trackUpdate(t.registry, nil, tracked); failure != nil {
		return failure.response()
	}
	request := &authenticationv1.TokenRequest{}
	if err := json.Unmarshal(encode(tracked.Object), request); err != nil {
		return fail(apierrors.NewBadRequest(err.Error())).response()
	}
	if failure := t.issue(k, r, request); failure != nil {
		return failure.response()
	}
	body, err := json.Marshal(request)
	if err != nil {
		panic(err) // it was decoded a moment ago
	}
	return respond(http.StatusCreated, append(body, '\n'))
}

// issue checks a request for a token, and writes the token into it.
func (t tokens) issue(k *kind, r *Request, request *authenticationv1.TokenRequest) *failure {
	now := t.now().UTC()
	spec := &request.Spec
	if len(spec.Audiences) == 0 {
		spec.Audiences = []string{issuer}
	}
	if request.Name != "" && request.Name != r.Name {
		return fail(apierrors.NewInvalid(tokenRequests.gvk.GroupKind(), r.Name, fieldErrors("metadata.name", request.Name, "must match the service account name if specified")))
	}
	request.Name, request.Namespace, request.UID = r.Name, cmp.Or(request.Namespace, r.Namespace), t.minter.newUID(tokenRequests, r.Namespace, r.Name)
	request.CreationTimestamp = metav1.NewTime(now)
	if errs := validExpiration(*spec.ExpirationSeconds); len(errs) > 0 {
		return fail(apierrors.NewInvalid(tokenRequests.gvk.GroupKind(), "", errs))
	}
	account := t.store.table(k).objects[key{r.Namespace, r.Name}]
	if account == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name))
	}
	private := privateClaims{Namespace: r.Namespace, Account: &reference{r.Name, account.uid}}
	if spec.BoundObjectRef != nil {
		if failure := t.bind(r, spec.BoundObjectRef, &private); failure != nil {
			return failure
		}
	}
	expires := now.Add(time.Duration(*spec.ExpirationSeconds) * time.Second)
	request.Status = authenticationv1.TokenRequestStatus{ExpirationTimestamp: metav1.NewTime(expires), Token: t.minter.sign(claims{
		Issuer: issuer, Subject: accountName(private), Audiences: spec.Audiences, ID: string(t.minter.newUID(tokenRequests, r.Namespace, r.Name)),
		Expires: expires.Unix(), NotBefore: now.Unix(), IssuedAt: now.Unix(), Private: private,
	})}
	return nil
}

func validExpiration(seconds int64) field.ErrorList {
	at := field.NewPath("spec", "expirationSeconds")
	switch {
	case seconds < shortestExpiration:
		return field.ErrorList{field.Invalid(at, seconds, "may not specify a duration less than 10 minutes")}
	case seconds > longestExpiration:
		return field.ErrorList{field.Invalid(at, seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bind binds a token to an object, without which it is invalid.
func (t tokens) bind(r *Request, ref *authenticationv1.BoundObjectReference, private *privateClaims) *failure {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	resource, to := schema.GroupResource{}, key{r.Namespace, ref.Name}
	switch (schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}) {
	case schema.GroupKind{Kind: "Pod"}:
		resource = podsStorage
	case schema.GroupKind{Kind: "Secret"}:
		resource = schema.GroupResource{Resource: "secrets"}
	case schema.GroupKind{Kind: "Node"}:
		resource, to.namespace = nodesStorage, ""
	default:
		return fail(apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk.String())))
	}
	v := t.store.object(resource, to)
	if v == nil {
		return fail(apierrors.NewNotFound(resource, ref.Name))
	}
	if resource == podsStorage {
		if name, _, _ := unstructured.NestedString(v.content, "spec", "serviceAccountName"); name != r.Name {
			return fail(apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", r.Name)))
		}
	}
	if ref.UID != "" && ref.UID != v.uid {
		return fail(apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)))
	}
	bound := &reference{v.name, v.uid}
	switch resource {
	case podsStorage:
		private.Pod = bound
		if name, _, _ := unstructured.NestedString(v.content, "spec", "nodeName"); name != "" {
			private.Node = &reference{Name: name}
			if node := t.store.object(nodesStorage, key{name: name}); node != nil {
				private.Node.UID = node.uid
			}
		}
	case nodesStorage:
		private.Node = bound
	default:
		private.Secret = bound
	}
	return nil
}

// object returns an object of a resource, or nil.
func (s *store) object(resource schema.GroupResource, at key) *version {
	if t := s.tables[resource]; t != nil {
		return t.objects[at]
	}
	return nil
}

// Authenticate returns the user whose token it is, or nil if the server has not issued it or it is no
// longer valid. The server itself takes requests without a token; who serves it over a network
// decides whose requests these are.
func (s *Server) Authenticate(token string) user.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, _, err := tokens{s.registry}.check(token, nil)
	if err != nil {
		return nil
	}
	info := &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: map[string][]string{}}
	for name, values := range who.Extra {
		info.Extra[name] = values
	}
	return info
}

// check returns whose token it is, and for which of the given audiences it is valid. The error is
// that of a TokenReview.
func (t tokens) check(token string, audiences []string) (*authenticationv1.UserInfo, []string, error) {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("[invalid bearer token, "+format+"]", args...)
	}
	c, ok := t.minter.verify(token)
	switch {
	case !ok && c.Issuer == issuer:
		return nil, nil, invalid("go-jose/go-jose: error in cryptographic primitive")
	case !ok:
		return nil, nil, errInvalidToken
	}
	if len(audiences) == 0 {
		audiences = []string{issuer}
	}
	shared := slices.DeleteFunc(slices.Clone(c.Audiences), func(a string) bool { return !slices.Contains(audiences, a) })
	now := t.now().Unix()
	switch {
	case len(shared) == 0:
		return nil, nil, invalid("token audiences %q is invalid for the target audiences %q", c.Audiences, audiences)
	case now > c.Expires:
		return nil, nil, invalid("service account token has expired")
	case now < c.NotBefore:
		return nil, nil, invalid("service account token is not valid yet")
	case !t.bindingsExist(c.Private):
		return nil, nil, invalid("service account token has been invalidated")
	}
	return c.user(), shared, nil
}

// bindingsExist reports whether the account and the objects to which a token is bound are still
// there. A Node to which the Pod of the token is bound may be gone.
func (t tokens) bindingsExist(p privateClaims) bool {
	exists := func(resource schema.GroupResource, namespace string, ref *reference) bool {
		if ref == nil {
			return true
		}
		v := t.store.object(resource, key{namespace, ref.Name})
		return v != nil && v.uid == ref.UID
	}
	node := p.Node
	if p.Pod != nil {
		node = nil
	}
	return exists(accountsStorage, p.Namespace, p.Account) && exists(podsStorage, p.Namespace, p.Pod) &&
		exists(schema.GroupResource{Resource: "secrets"}, p.Namespace, p.Secret) && exists(nodesStorage, "", node)
}

// A reference names an object in a token.
type reference struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}
