//nolint:discarded // the whole file is meant as it stands

package clean

func exempt() {
	newCustom()
	defer newCustom()
}
