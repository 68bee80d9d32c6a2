// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

// claimant says who has the claim of a resource. In a system that stores owners there are no claims.
type claimant int

const (
	claimNone   claimant = iota
	claimMine            // the object
	claimLiving          // another object, which exists, or which nothing shows to be gone
	claimGone            // another object, which does not exist any more
	claimFormer          // an object of the same kind and name that does not exist any more
	claimants
)

// storedOwner says whom the system shows as the owner of a resource that exists.
type storedOwner int

const (
	ownerUnknown storedOwner = iota // the system stores none, or does not show it in this state
	ownerNone                       // the system stores owners, and this resource has none
	ownerMine                       // the object
	ownerFormer                     // the holder of the claim, or the owner that the claim was adopted from
	ownerLiving                     // another object, which exists
	ownerOther                      // another object, of which nothing shows that it exists
	storedOwners
)

// presence says whether a resource is there.
type presence int

const (
	isAbsent presence = iota
	isUnseen          // it was created so recently that the system may not show it
	isThere
	presences
)

// source says how an object has come to the id of a resource.
type source int

const (
	idUnknown source = iota
	idNamed          // by the function that names the resources of objects
	idWished         // by an annotation, which all who may edit the object can write
	idProven         // the system has said that it made the resource for this object: by its answer, or a tag
	sources
)

// word is that of adoptFromAnnotation.
type word int

const (
	wordNone word = iota
	wordOwner
	wordNobody // noOwner
	words
)

// A knowledge is all that whose a resource is depends on. It is gathered once in a reconcile.
type knowledge struct {
	deleting bool        // the object is being deleted, and its policy does not keep the resource
	stores   bool        // Options.StoresOwner: the system is the proof
	claim    claimant    // in a system that stores no owners: the claim is the proof
	owner    storedOwner // what the system shows
	resource presence
	id       source
	chosen   bool // clients choose ids
	edited   bool // the object has another resource than the one that its annotation names
	recorded bool // a hint: the annotations say that the resource was made for this object
	right    bool // the object may adopt: the author of the operator or the namespace has said so
	consent  bool // the owner has given it to this object
	gives    bool // the object gives its resource away
	word     word
	creates  bool // the policy lets it be created
	manages  bool // the policy lets it be changed, which stores the owner
}

// A next is what follows from whose a resource is.
type next int

const (
	nextWait     next = iota + 1 // nothing is changed, published or deleted until more is known
	nextManage                   // the resource is that of the object
	nextClaim                    // it is, and the claim is to be written
	nextCreate                   // there is none
	nextAbsent                   // there is none, and there will be none
	nextAdopt                    // it becomes that of the object
	nextTransfer                 // so does the claim of another one
	nextShow                     // it is of no object, and may be looked at
	nextGive                     // the object gives it away, and leaves it alone
	nextRefuse                   // it is not that of the object
	nextDelete                   // of a deletion: it is
	nextLeave                    // of a deletion: it is not
)

// A decision is a next, with why.
type decision struct {
	next next
	why  reason
}

// A reason is why a decision is as it is, by which its texts are chosen.
type reason string

const (
	whyGives     reason = "the object gives its resource away"
	whyEdited    reason = "the object has another resource"
	whyOwner     reason = "the system shows another owner"
	whyReplaced  reason = "the system shows no owner any more"
	whyUnshown   reason = "the system does not show the owner"
	whyMine      reason = "the claim, or the owner in the system, is the object"
	whyMade      reason = "the system has made it for this object"
	whyLiving    reason = "a living object has it"
	whyGone      reason = "an object has it that is gone"
	whyFormer    reason = "this object had it under its former UID"
	whyConsent   reason = "its owner gives it to this object"
	whyRight     reason = "the object may adopt it"
	whyUnmade    reason = "nothing shows that it was made for this object"
	whyUnseen    reason = "it was created recently"
	whyWrongID   reason = "what the annotation names does not exist"
	whyPolicy    reason = "the policy does not let it be created"
	whyUncreated reason = "it does not exist"
	whyNothing   reason = "there is nothing to delete"
)

// decide says what follows from whose a resource is. Nothing that only the object says decides: the
// annotations help to find a resource, and are a wish.
func decide(k *knowledge) decision {
	switch {
	case k.gives && k.deleting:
		return decision{nextLeave, whyGives}
	case k.gives:
		return decision{nextGive, whyGives}
	case k.deleting:
		return k.onDeletion()
	case k.edited && !k.mine():
		return decision{nextRefuse, whyEdited}
	case k.claim != claimNone:
		return k.claimed()
	case k.resource == isThere:
		return k.unclaimed()
	case k.resource == isUnseen:
		return k.unseen()
	}
	return k.absent()
}

// mine reports whether what can be trusted says that the resource is that of the object. A system that keeps
// its first owner shows that one for ever: the claim of who has it now weighs more.
func (k *knowledge) mine() bool {
	return k.claim == claimMine || k.claim == claimNone && k.owner == ownerMine
}

// foreign reports whether the system shows an owner that is neither the object nor the holder of the
// claim: no claim, word or consent weighs more.
func (k *knowledge) foreign() bool { return k.owner == ownerLiving || k.owner == ownerOther }

// claimed decides about a resource that has a claim.
func (k *knowledge) claimed() decision {
	switch {
	case k.foreign():
		return decision{nextRefuse, whyOwner}
	case k.claim == claimMine && k.resource == isThere:
		return decision{nextManage, whyMine}
	case k.claim == claimMine && k.resource == isUnseen:
		return decision{nextWait, whyUnseen}
	case k.claim == claimMine:
		return k.absent()
	case k.consent && k.manages:
		return decision{nextTransfer, whyConsent}
	case k.claim == claimLiving:
		return decision{nextRefuse, whyLiving}
	case k.word == wordOwner && k.right && k.manages:
		return decision{nextTransfer, whyRight}
	case k.claim == claimFormer:
		return decision{nextRefuse, whyFormer}
	}
	return decision{nextRefuse, whyGone}
}

// unclaimed decides about a resource that exists, and that has no claim.
func (k *knowledge) unclaimed() decision {
	switch {
	case k.owner == ownerMine && k.stores:
		return decision{nextManage, whyMine}
	case k.owner == ownerMine:
		return decision{nextClaim, whyMine}
	case k.consent && k.manages:
		return decision{nextAdopt, whyConsent}
	case k.owner == ownerLiving:
		return decision{nextRefuse, whyLiving}
	case k.owner == ownerOther && k.word == wordOwner && k.right && k.manages:
		return decision{nextAdopt, whyRight}
	case k.owner == ownerOther:
		return decision{nextRefuse, whyOwner}
	case k.id == idProven && k.stores:
		return decision{nextManage, whyMade}
	case k.id == idProven:
		return decision{nextClaim, whyMade}
	case k.stores && k.owner == ownerUnknown:
		return decision{nextWait, whyUnshown}
	case k.stores && k.recorded && !(k.word == wordNobody && k.right):
		return decision{nextRefuse, whyReplaced}
	case k.right && !k.manages:
		return decision{nextShow, whyRight}
	case k.right && (k.id == idWished || k.word == wordNobody):
		return decision{nextAdopt, whyRight}
	}
	return decision{nextRefuse, whyUnmade}
}

// unseen decides about a resource that the system may not show yet, and that has no claim.
func (k *knowledge) unseen() decision {
	if k.id == idProven && !k.stores {
		return decision{nextClaim, whyMade}
	}
	return decision{nextWait, whyUnseen}
}

// absent decides about a resource that does not exist, and that no other object has claimed.
func (k *knowledge) absent() decision {
	switch {
	case !k.creates:
		return decision{nextAbsent, whyPolicy}
	case k.id == idWished && !k.recorded && !(k.right && k.chosen) && k.claim != claimMine:
		return decision{nextRefuse, whyWrongID}
	}
	return decision{nextCreate, whyUncreated}
}

// onDeletion decides about the resource of an object that is being deleted.
func (k *knowledge) onDeletion() decision {
	proven := k.mine() || k.id == idProven
	switch {
	case k.foreign():
		return decision{nextLeave, whyOwner}
	case k.claim != claimNone && k.claim != claimMine:
		return decision{nextLeave, whyLiving}
	case k.resource == isThere && k.owner == ownerNone && !(k.id == idProven):
		return decision{nextLeave, whyReplaced}
	case k.resource == isThere && proven:
		return decision{nextDelete, whyMine}
	case k.resource == isThere && k.stores && k.owner == ownerUnknown && k.recorded:
		return decision{nextWait, whyUnshown}
	case k.resource == isThere:
		return decision{nextLeave, whyUnmade}
	case k.resource == isUnseen && proven:
		return decision{nextDelete, whyUnseen}
	case k.resource == isUnseen:
		return decision{nextWait, whyUnseen}
	}
	return decision{nextAbsent, whyNothing}
}
