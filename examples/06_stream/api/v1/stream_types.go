// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// Retention says when NATS deletes messages.
//
// +kubebuilder:validation:Enum=Limits;Interest;WorkQueue
type Retention string

// How NATS decides which messages to keep.
const (
	RetentionLimits    Retention = "Limits"    // until a limit is reached
	RetentionInterest  Retention = "Interest"  // until all consumers have acknowledged them
	RetentionWorkQueue Retention = "WorkQueue" // until one consumer has acknowledged them
)

// Storage says where NATS keeps messages.
//
// +kubebuilder:validation:Enum=File;Memory
type Storage string

// Where messages are kept.
const (
	StorageFile   Storage = "File"
	StorageMemory Storage = "Memory"
)

// Discard says what happens to a message when a limit is reached.
//
// +kubebuilder:validation:Enum=Old;New
type Discard string

// What is discarded.
const (
	DiscardOld Discard = "Old" // the oldest message
	DiscardNew Discard = "New" // the new one: its publisher gets an error
)

// Server is a NATS server with JetStream.
type Server struct {
	// Address is the URL of the server, such as nats://nats.example.com:4222; several are
	// separated by commas. Without it, the server is the one that the operator was started with.
	// It can't have credentials.
	//
	// +kubebuilder:validation:Pattern=`^(nats|tls|ws|wss)://[^@\s]+$`
	// +kubebuilder:validation:MaxLength=1000
	// +optional
	Address string `json:"address,omitempty"`

	// CredentialsSecret is the name of a Secret in the namespace of the Stream. It has the keys
	// username and password, or token, or nats.creds: a file of credentials as nsc writes it.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CredentialsSecret string `json:"credentialsSecret,omitempty"`
}

// StreamSpec is how a stream should be.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name)",message="the name can't be added or removed: create another Stream"
// +kubebuilder:validation:XValidation:rule="has(self.server.address) == has(oldSelf.server.address)",message="the address can't be added or removed: create another Stream"
type StreamSpec struct {
	// Name is the name of the stream in NATS. Without it, the name is made from the UID of the
	// object. It can't be changed.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the name can't be changed: create another Stream"
	// +optional
	Name string `json:"name,omitempty"`

	// Server is where the stream is.
	//
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="!has(self.address) || !has(oldSelf.address) || self.address == oldSelf.address",message="the address can't be changed: create another Stream"
	// +optional
	Server Server `json:"server,omitempty"`

	// Subjects are the subjects whose messages the stream stores. They may have wildcards:
	// "orders.>".
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +listType=set
	Subjects []string `json:"subjects"`

	// Retention says when messages are deleted. NATS can't change it to or from WorkQueue.
	//
	// +kubebuilder:default=Limits
	// +optional
	Retention Retention `json:"retention,omitempty"`

	// Storage says where messages are kept. NATS can't change it.
	//
	// +kubebuilder:default=File
	// +optional
	Storage Storage `json:"storage,omitempty"`

	// Discard says what is discarded when a limit is reached.
	//
	// +kubebuilder:default=Old
	// +optional
	Discard Discard `json:"discard,omitempty"`

	// Replicas is on how many servers of a cluster each message is kept.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// MaxMessages is the most messages that are kept. Without it, a limit that the stream has is
	// left, and copied here.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxMessages *int64 `json:"maxMessages,omitempty"`

	// MaxBytes is the most bytes that are kept. Without it, a limit that the stream has is left,
	// and copied here.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxBytes *int64 `json:"maxBytes,omitempty"`

	// MaxAge is how long a message is kept at most, such as 24h. Without it, a limit that the
	// stream has is left, and copied here.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="the age cannot be negative"
	// +optional
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// MaxMessageBytes is the size of the largest message. Without it, a limit that the stream has
	// is left, and copied here.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxMessageBytes *int32 `json:"maxMessageBytes,omitempty"`

	// ConnectionSecret is the name of a Secret that the operator writes, with the address of the
	// server, the name of the stream and its subjects.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ConnectionSecret string `json:"connectionSecret,omitempty"`
}

// StreamStatus is the observed state of a Stream.
type StreamStatus struct {
	policy.RequestStatus `json:",inline"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Address is the URL of the server.
	//
	// +optional
	Address string `json:"address,omitempty"`

	// Stream is the name of the stream in NATS.
	//
	// +optional
	Stream string `json:"stream,omitempty"`

	// Conditions are Ready, those of package external, InUse and, while Ready is not true,
	// Reconciling or Stalled.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Stream is a stream of a NATS JetStream server.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=streams,categories=ctrlkit
// +kubebuilder:printcolumn:name="Stream",type=string,JSONPath=`.status.stream`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type Stream struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StreamSpec   `json:"spec"`
	Status StreamStatus `json:"status,omitempty"`
}

// StreamList is a list of Streams.
//
// +kubebuilder:object:root=true
type StreamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Stream `json:"items"`
}
