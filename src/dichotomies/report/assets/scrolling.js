// A table that is wider than its place says so, until it is scrolled to its end.
for (const place of document.querySelectorAll(".scroll")) {
  const hint = element("p", { class: "hint", hidden: "" }, "More columns: scroll sideways →");
  place.before(hint);
  place.setAttribute("role", "region");
  place.setAttribute("aria-label", "Table");
  const update = () => {
    const hidden = place.scrollWidth - place.clientWidth;
    hint.hidden = hidden < 2;
    place.classList.toggle("more", hidden - place.scrollLeft > 2);
    if (hidden < 2) place.removeAttribute("tabindex");
    else place.tabIndex = 0; // arrow keys scroll what has the focus
  };
  place.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(place);
}
