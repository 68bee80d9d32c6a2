// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diag

// This file is data.
//
// table explains every code. docs/language.md shows it, and a test runs every example.
var table = []Explanation{
	{
		Code: IllegalCharacter, Severity: Error,
		Title:   "illegal character",
		Text:    "A document has no control characters, and has invisible characters only in comments and quotes.",
		Example: "decl Rollout for Deployment {\n    action {\n        Look\x00()\n    }\n}\n",
	},
	{
		Code: InvalidUTF8, Severity: Error,
		Title:   "text is not UTF-8",
		Text:    "A document is UTF-8 text, its comments included.",
		Example: "// caf\xe9\ndecl Rollout for Deployment {\n    action {\n        Look()\n    }\n}\n",
	},
	{
		Code: ByteOrderMark, Severity: Warning,
		Title:   "byte order mark",
		Text:    "Some editors put an invisible mark before the first character. It has no meaning, and `ctrlkit fmt` removes it.",
		Example: "\uFEFFdecl Rollout for Deployment {\n    action {\n        Look()\n    }\n}\n",
	},
	{
		Code: CarriageReturn, Severity: Warning,
		Title:   "carriage return",
		Text:    "Lines end with a newline alone. `ctrlkit fmt` removes carriage returns. The warning is reported once for each document.",
		Example: "decl Rollout for Deployment {\r\n    action {\n        Look()\n    }\n}\n",
	},
	{
		Code: UnclosedQuote, Severity: Error,
		Title: "quote is never closed",
		Text:  "A quoted value ends on the line on which it begins.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app="web
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadEscape, Severity: Error,
		Title: "unknown escape",
		Text:  "Between quotes a backslash begins one of `\\\"`, `\\\\`, `\\$`, `\\n`, `\\t`, `\\u1234` and `\\U00012345`.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app="we\b"
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: NeedsQuotes, Severity: Error,
		Title: "value needs quotes",
		Text:  "A value with white space, brackets, commas, quotes, an equals sign, or a dollar sign that does not begin a reference needs double quotes.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=$name
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: UnclosedReference, Severity: Error,
		Title: "reference is never closed",
		Text:  "A reference ends with a brace on the line on which it begins.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=${target.Name
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadReference, Severity: Error,
		Title: "malformed reference",
		Text:  "A reference is `${target.FIELD}` or `${target.FIELD.FIELD}` and so on. It cannot call methods or refer to elements of lists and maps.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=${target.Labels[app]}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadComment, Severity: Error,
		Title: "malformed comment",
		Text:  "A comment begins with two slashes after white space or punctuation, and ends with its line.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned//mine
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: UnknownStatement, Severity: Error,
		Title: "unknown statement",
		Text:  "A document has `bind`, `alias` and `decl`; a `decl` has `state` and `action`.",
		Example: `alais Job batch/v1/Job

decl Rollout for Job {
    action {
        Look()
    }
}
`,
	},
	{
		Code: Unexpected, Severity: Error,
		Title: "unexpected text",
		Text:  "The text does not have the form of the statement.",
		Example: `decl Rollout of Deployment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnclosedBlock, Severity: Error,
		Title: "block is never closed",
		Text:  "Every opening brace has a closing one. Where one is missing, the indentation decides which block is reported.",
		Example: `decl Rollout for Deployment {
    action {
        Look()
}
`,
	},
	{
		Code: StrayBrace, Severity: Error,
		Title: "closing brace without an opening one",
		Text:  "A closing brace closes the innermost block, but no block is open here.",
		Example: `decl Rollout for Deployment {
    action {
        Look()
    }
}
}
`,
	},
	{
		Code: MissingBrace, Severity: Error,
		Title: "opening brace is missing",
		Text:  "The block of a `decl`, of `state`, of `action` and of each state begins with a brace on the same line.",
		Example: `decl Rollout for Deployment {
    action
        Look()
    }
}
`,
	},
	{
		Code: UnclosedArguments, Severity: Error,
		Title: "parenthesis is never closed",
		Text:  "The states of an action are listed between parentheses.",
		Example: `decl Rollout for Deployment {
    action {
        Look(
    }
}
`,
	},
	{
		Code: DuplicateName, Severity: Error,
		Title: "name is declared twice",
		Text:  "A document binds each group and version once, and declares each alias once. A manager declares each state and action once, a package each manager.",
		Example: `decl Rollout for Deployment {
    action {
        Look()
        Look()
    }
}
`,
	},
	{
		Code: BadName, Severity: Error,
		Title: "name is not an identifier",
		Text:  "Managers, aliases, states and actions have names that Go accepts: letters, digits and underscores, beginning with a letter.",
		Example: `decl Rollout for Deployment {
    action {
        Look-Up()
    }
}
`,
	},
	{
		Code: UnknownState, Severity: Error,
		Title: "unknown state",
		Text:  "An action is given states that are declared in the same `decl`.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned
        }
    }
    action {
        Look(pod)
    }
}
`,
	},
	{
		Code: RepeatedArgument, Severity: Error,
		Title: "state is given twice",
		Text:  "An action is given each state once.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned
        }
    }
    action {
        Look(pods, pods)
    }
}
`,
	},
	{
		Code: ReservedName, Severity: Error,
		Title: "name is reserved",
		Text:  "A state becomes a parameter of Go methods: its name cannot be a keyword, a predeclared identifier, or a variable of the generated code (ctx, err, impl, logger, m, result, s, state, target).",
		Example: `decl Rollout for Deployment {
    state {
        range []Pod {
            owned
        }
    }
    action {
        Look(range)
    }
}
`,
	},
	{
		Code: NotExported, Severity: Error,
		Title: "name does not begin with a capital letter",
		Text:  "Managers and actions become exported Go names.",
		Example: `decl Rollout for Deployment {
    action {
        look()
    }
}
`,
	},
	{
		Code: NameCollision, Severity: Error,
		Title: "names collide in the generated code",
		Text:  "States that differ only in the case of their first letter get the same getter; an action cannot have the name of a method of the hook, and a manager cannot have the name of a type that is generated for another one.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned
        }
        Pods []Pod {
            owned
        }
    }
    action {
        Look(pods, Pods)
    }
}
`,
	},
	{
		Code: BadGroupVersion, Severity: Error,
		Title: "malformed group and version",
		Text:  "Write VERSION for the core group, GROUP/VERSION for every other one.",
		Example: `bind batch k8s.io/api/batch/v1

decl Rollout for Deployment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: BadPackagePath, Severity: Error,
		Title: "malformed Go package path",
		Text:  "The second word of `bind` is the import path of a Go package.",
		Example: `bind batch/v1 /k8s.io/api/batch/v1

decl Rollout for Deployment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: BadKind, Severity: Error,
		Title: "malformed kind",
		Text:  "A kind is an alias, the name of a built-in kind, VERSION/KIND for the core group, or GROUP/VERSION/KIND.",
		Example: `decl Rollout for apps/Deployment/ {
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnknownKind, Severity: Error,
		Title: "unknown kind",
		Text:  "A kind of one word is an alias of this document or a built-in kind of Kubernetes.",
		Example: `decl Rollout for Deploiment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnboundGroupVersion, Severity: Error,
		Title: "group and version are not bound",
		Text:  "A kind with its group and version needs a `bind` in the same document, unless Kubernetes itself has that group and version.",
		Example: `decl Rollout for example.com/v1/Database {
    action {
        Look()
    }
}
`,
	},
	{
		Code: PackageNotLoaded, Severity: Error,
		Title: "Go package cannot be loaded",
		Text:  "The package must be in the Go module of the document, or in a module that its go.mod requires.",
		Example: `bind example.com/v1 controller-kit-demo/api/missing/v1
alias Database example.com/v1/Database

decl Rollout for Database {
    action {
        Look()
    }
}
`,
	},
	{
		Code: NoSuchType, Severity: Error,
		Title: "kind is not in the package",
		Text:  "The Go package that is bound to the group and version must declare a type with the name of the kind.",
		Example: `decl Rollout for apps/v1/Deploymnet {
    action {
        Look()
    }
}
`,
	},
	{
		Code: NotAnObject, Severity: Error,
		Title: "type is not an object",
		Text:  "The Go type of a kind is a struct that embeds metav1.TypeMeta and metav1.ObjectMeta and has the method DeepCopyObject, which controller-gen writes.",
		Example: `decl Rollout for v1/ObjectReference {
    action {
        Look()
    }
}
`,
	},
	{
		Code: NoListType, Severity: Error,
		Title: "kind has no list type",
		Text:  "A list of a kind needs a Go type KINDList in the same package: a struct with a field Items []KIND and the method DeepCopyObject.",
		Example: `decl Rollout for Deployment {
    state {
        bindings []v1/Binding {
            labels/app=web
        }
    }
    action {
        Look(bindings)
    }
}
`,
	},
	{
		Code: AmbiguousKind, Severity: Error,
		Title: "two groups have this kind",
		Text:  "Where two built-in groups have a kind of the same name, say which one is meant, directly or by an alias.",
		Example: `decl Rollout for Deployment {
    state {
        events []Event {
            namespace=default
        }
    }
    action {
        Look(events)
    }
}
`,
	},
	{
		Code: WrongPackage, Severity: Error,
		Title: "package holds another group or version",
		Text:  "The packages of Kubernetes can only be bound to the group (short or in full) and version that they contain.",
		Example: `bind batch/v1 k8s.io/api/apps/v1

decl Rollout for batch/v1/Deployment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnknownSelector, Severity: Error,
		Title: "unknown selector",
		Text:  "The selectors are `name=`, `namespace=`, `labels/KEY=`, `fields/PATH=`, `owned` and `owned=any`.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            label/app=web
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: DuplicateSelector, Severity: Error,
		Title: "selector is given twice",
		Text:  "A state has each selector, and each key of a label or field, once.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned
            owned
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: MissingValue, Severity: Error,
		Title: "value is missing",
		Text:  "Every selector but `owned` has a value. An empty label or field is written `\"\"`; names are never empty.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: UnwantedValue, Severity: Error,
		Title: "selector takes no value",
		Text:  "Write `owned` alone, or `owned=any`.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned=true
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: MissingKey, Severity: Error,
		Title: "key is missing",
		Text:  "`labels/` is followed by the key of a label, `fields/` by the path of a field.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/=web
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: NoSelector, Severity: Error,
		Title: "single object is not selected",
		Text:  "A state that is one object needs a name, labels or fields: `owned` and `namespace` alone would match anything.",
		Example: `decl Rollout for Deployment {
    state {
        pod Pod {
            owned
        }
    }
    action {
        Look(pod)
    }
}
`,
	},
	{
		Code: BadLabelKey, Severity: Error,
		Title: "malformed label key",
		Text:  "A label key is a name of at most 63 letters, digits, `-`, `_` and `.`, with an optional DNS domain and a slash before it.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/-app=web
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadLabelValue, Severity: Error,
		Title: "malformed label value",
		Text:  "A label value has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=web-
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadObjectName, Severity: Error,
		Title: "malformed object name",
		Text:  "The name of an object is a DNS name: lower-case letters, digits, `-` and `.`, beginning and ending with a letter or digit. Kinds of rbac.authorization.k8s.io allow more.",
		Example: `decl Rollout for Deployment {
    state {
        pod Pod {
            name=Web
        }
    }
    action {
        Look(pod)
    }
}
`,
	},
	{
		Code: BadNamespace, Severity: Error,
		Title: "malformed namespace",
		Text:  "A namespace is a DNS label: at most 63 lower-case letters, digits and `-`. `*` stands for all namespaces.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            namespace=kube_system
            labels/app=web
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadFieldPath, Severity: Error,
		Title: "malformed field path",
		Text:  "The path of a field begins with a dot and has the names of the JSON form with dots between them, as in `.spec.nodeName`.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            fields/spec.nodeName=a
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: UnknownField, Severity: Error,
		Title: "unknown field",
		Text:  "Every name of the path is a field of the JSON form of the Go type.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            fields/.spec.nodename=a
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: FieldNotText, Severity: Error,
		Title: "field cannot be text",
		Text:  "A field in a selector is a string, an integer, a bool, or has a method String and is not a time. It is not in a list or map.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            fields/.spec.containers=a
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: BadFieldValue, Severity: Error,
		Title: "value that the field never has",
		Text:  "The value for an integer or a bool is written as Kubernetes writes it.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            fields/.spec.hostNetwork=yes
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: Contradiction, Severity: Error,
		Title: "selectors say the same thing twice",
		Text:  "Names and namespaces are selected by `name=` and `namespace=` or by a field, not by both; the namespace only by `namespace=`.",
		Example: `decl Rollout for Deployment {
    state {
        pod Pod {
            name=web
            fields/.metadata.name=db
        }
    }
    action {
        Look(pod)
    }
}
`,
	},
	{
		Code: UnsetField, Severity: Error,
		Title: "field that is never set",
		Text:  "Objects in the cache have no `kind` and no `apiVersion`: all of them are of the kind of the state.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            fields/.kind=Pod
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: NotTarget, Severity: Error,
		Title: "reference to something other than the target",
		Text:  "A reference names a field of `target`, the object that is reconciled.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=${deployment.Name}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: UnknownTargetField, Severity: Error,
		Title: "target has no such field",
		Text:  "References use the names of Go fields.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=${target.Spec.Nmae}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: TargetNotText, Severity: Error,
		Title: "field of the target cannot be text",
		Text:  "A field in a reference is a string, an integer, a bool, or has a method String and is not a time.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=${target.Spec}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: MethodReference, Severity: Error,
		Title: "reference to a method",
		Text:  "A reference names a field. It cannot call a method.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/app=${target.GetName}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: UnsetTargetField, Severity: Error,
		Title: "field of the target that is never set",
		Text:  "The target has no `Kind` and no `APIVersion` when it has been read. Write the kind itself.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            labels/owner=${target.Kind}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: OwnedElsewhere, Severity: Error,
		Title: "owned object in another namespace",
		Text:  "An owner reference does not cross namespaces: what a namespaced target owns is in the namespace of the target.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            namespace=other
            owned
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: OwnedClusterScoped, Severity: Error,
		Title: "cluster-scoped object owned by a namespaced target",
		Text:  "An owner reference does not cross scopes: Kubernetes treats the owner of such an object as absent, and deletes the object.",
		Example: `decl Rollout for Deployment {
    state {
        volumes []PersistentVolume {
            owned
        }
    }
    action {
        Look(volumes)
    }
}
`,
	},
	{
		Code: NamespaceOfClusterScoped, Severity: Error,
		Title: "namespace of a cluster-scoped kind",
		Text:  "Objects of a cluster-scoped kind have no namespace.",
		Example: `decl Rollout for Deployment {
    state {
        nodes []Node {
            namespace=default
        }
    }
    action {
        Look(nodes)
    }
}
`,
	},
	{
		Code: NamespaceNeeded, Severity: Error,
		Title: "namespace is missing",
		Text:  "A cluster-scoped target has no namespace, so a namespaced state must name one.",
		Example: `decl Drain for Node {
    state {
        pods []Pod {
            fields/.spec.nodeName=${target.Name}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: NoTargetNamespace, Severity: Error,
		Title: "target has no namespace",
		Text:  "The namespace of a cluster-scoped target is always empty.",
		Example: `decl Drain for Node {
    state {
        pods []Pod {
            namespace=${target.Namespace}
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: NameInAllNamespaces, Severity: Error,
		Title: "one object by name in all namespaces",
		Text:  "A name is unique only within its namespace.",
		Example: `decl Rollout for Deployment {
    state {
        pod Pod {
            name=web
            namespace=*
        }
    }
    action {
        Look(pod)
    }
}
`,
	},
	{
		Code: UnusedBind, Severity: Warning,
		Title: "bind is not used",
		Text:  "No alias and no kind of this document uses the group and version. Binds of the groups of Kubernetes to their own packages, which are bound anyway, are not reported.",
		Example: `bind controller-kit-demo/v1 controller-kit-demo/api/v1

decl Rollout for Deployment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnusedAlias, Severity: Warning,
		Title: "alias is not used",
		Text:  "No `decl` and no state of this document uses the alias.",
		Example: `alias Job batch/v1/Job

decl Rollout for Deployment {
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnusedState, Severity: Warning,
		Title: "state is not used",
		Text:  "No action of the manager uses the state.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            owned
        }
    }
    action {
        Look()
    }
}
`,
	},
	{
		Code: UnlikelyValue, Severity: Warning,
		Title: "value is not one of the known ones",
		Text:  "The Go package has constants for the values of the field, and this is not one of them.",
		Example: `decl Rollout for Deployment {
    state {
        pods []Pod {
            fields/.status.phase=Runing
        }
    }
    action {
        Look(pods)
    }
}
`,
	},
	{
		Code: ShadowedKind, Severity: Warning,
		Title: "a bound package has the kind too",
		Text:  "A name without an alias means the built-in kind, even if a bound package has a kind of that name.",
		Example: `bind controller-kit-demo/v1 controller-kit-demo/api/v1
alias Demo controller-kit-demo/v1/CronJob

decl Copier for Demo {
    state {
        jobs []CronJob {
            owned
        }
    }
    action {
        Look(jobs)
    }
}
`,
	},
	{
		Code: EmptyManager, Severity: Warning,
		Title: "manager has no actions",
		Text:  "A manager without actions does nothing.",
		Example: `decl Rollout for Deployment {}
`,
	},
	{
		Code: PackageErrors, Severity: Warning,
		Title: "Go package does not compile",
		Text:  "The checker uses what it could read of the package, but the generated code does not compile until the package does.",
		Example: `bind example.com/v1 controller-kit-demo/api/broken/v1
alias Database example.com/v1/Database

decl Rollout for Database {
    action {
        Look()
    }
}
`,
	},
	{
		Code: VersionMismatch, Severity: Warning,
		Title: "package declares another version",
		Text:  "The Go package declares another version than the one that it is bound to. The checker uses the version of the package.",
		Example: `bind controller-kit-demo/v2 controller-kit-demo/api/v1
alias Demo controller-kit-demo/v2/CronJob

decl Rollout for Demo {
    action {
        Look()
    }
}
`,
	},
	{
		Code: EmptyDocument, Severity: Warning,
		Title:   "document is empty",
		Text:    "Nothing is generated from a document that contains only comments.",
		Example: "// Nothing yet.\n",
	},
}
