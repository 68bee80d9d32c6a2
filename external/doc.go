// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package external is for what is outside the cluster: it reconciles objects that stand for something
// which is made, kept and removed in another system, and publishes how it is reached. What it makes
// are steps of package step, so that an operator writes what is its own, and nothing around it.
//
// # Resources
//
// [New] is for a resource that a system has: a stream, a bucket, a database. An operator connects, and
// observes, creates, updates and deletes one resource; everything else is done here:
//
//	type streams struct{ servers *external.Pool[*nats.Conn] }
//
//	type request = step.Request[*v1.Stream]
//
//	func (s streams) Connect(ctx context.Context, req *request) (external.Client[*v1.Stream], error)
//
//	stream := external.New("Stream", streams{servers}, external.Options[*v1.Stream]{
//		Identity: external.ByName(nameOf), // made of the UID by NameRules, or that of the spec
//	})
//	engine, err := step.New(options, stream)
//
// What decides how safe creation is, is by what the external system identifies resources: see
// [Identity]. The intent to create one is written to the object before it is created, in one patch
// with the finalizer. After a crash the resource is found again by its name, its token or its tag.
// Only where a system knows none of these, a person has to look, and the condition says for what.
//
// Wrong, because an answer that was lost is taken for one that says no, and the resource is created
// twice:
//
//	func (c streamClient) Create(ctx context.Context, obj *v1.Stream, by external.Creation) (string, error) {
//		err := c.conn.AddStream(by.Name)
//		return by.Name, external.Refused(err)
//	}
//
// Right, because only what the system has answered is an answer:
//
//	func (c streamClient) Create(ctx context.Context, obj *v1.Stream, by external.Creation) (string, error) {
//		err := c.conn.AddStream(by.Name)
//		if errors.As(err, new(*nats.APIError)) {
//			err = external.Refused(err)
//		}
//		return by.Name, err
//	}
//
// # Anything else
//
// [Simple] is the floor below, for what does not fit into observe, create, update and delete, such as
// a user of a database with its grants and its password. It takes functions:
//
//	user := external.Simple("User", external.Funcs[*v1.User]{
//		CreateOrUpdate: func(ctx context.Context, req *step.Request[*v1.User]) error {
//			return databases.EnsureUser(ctx, req.Object.Spec.Name)
//		},
//		Delete: func(ctx context.Context, req *step.Request[*v1.User]) error {
//			return databases.DropUser(ctx, req.Object.Spec.Name)
//		},
//		Operator: "prod/mysql",
//	})
//
// It does for each kind in the same way, and so does [New]:
//
//   - An object that another installation of the operator has claimed is left alone.
//   - The claim of the object and its finalizer are written, in one patch, before anything is
//     made.
//   - It is decided whether the object is made or removed, and whether its policy allows that: see
//     package policy. A step of one's own asks with [ResolvePolicy].
//   - An object that was never claimed, as Claimed reports it, is deleted without a call.
//   - A request to reconcile now is acknowledged.
//   - What the functions return becomes the condition Ready, with a reason, a severity and a
//     backoff: see package failure. What has changed of the object is written once, by the engine.
//
// Wrong, because a crash after EnsureUser loses the name, and nothing can drop the user:
//
//	CreateOrUpdate: func(ctx context.Context, req *request) error {
//		name := randomName()
//		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, nameAnnotation, name)
//		return databases.EnsureUser(ctx, name)
//	},
//
// Right, because what Claim has written is in the cluster before CreateOrUpdate is called:
//
//	Claim: func(_ context.Context, req *request) error {
//		if req.Object.Annotations[nameAnnotation] == "" {
//			metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, nameAnnotation, randomName())
//		}
//		return nil
//	},
//	CreateOrUpdate: func(ctx context.Context, req *request) error {
//		return databases.EnsureUser(ctx, req.Object.Annotations[nameAnnotation])
//	},
//
// # Connection details
//
// Options.ConnectionSecret names a Secret for what the users of a resource need, such as an address and
// a password. A [Publisher] writes it to several Secrets and ConfigMaps, with chosen keys:
//
//	connection := &external.Publisher[*v1.Database]{
//		Targets: func(db *v1.Database) []external.Target {
//			return []external.Target{
//				{Secret: db.Name, Keys: map[string]string{"dsn": "postgres://{{.user}}:{{.password}}@{{.host}}/{{.name}}"}},
//				{ConfigMap: db.Name, Keys: map[string]string{"host": "{{.host}}"}},
//			}
//		},
//		Public: []string{"host"},
//	}
//
// What needs no system outside the cluster is not for this package: see package apply for children.
package external
