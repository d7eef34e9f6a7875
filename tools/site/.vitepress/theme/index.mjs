/** VitePress' theme, with diagrams, and with tabs for the two majors of Effect. */
import "./style.css"
import { onContentUpdated, useData, withBase } from "vitepress"
import Theme from "vitepress/theme-without-fonts"
import { defineComponent, h, onMounted, ref, watch } from "vue"

/** The diagram shrinks with the page, as far as its text stays readable. */
const readable = (svg) =>
  svg.replace(
    /max-width: ([\d.]+)px;/,
    (most, width) => `${most} min-width: ${Math.round(width * 0.7)}px;`
  )

/** Each drawing has a unique id, because Mermaid removes an element with the same id. */
let drawings = 0

/**
 * A Mermaid diagram, drawn in the browser with the current colours. Mermaid is loaded only on pages with a diagram.
 * Until it is drawn, and without JavaScript, its text is shown.
 */
const Diagram = defineComponent({
  props: { code: { type: String, required: true } },
  setup: (props) => {
    const { isDark, theme } = useData()
    const code = decodeURIComponent(props.code)
    const drawn = ref()

    const draw = async () => {
      const { default: mermaid } = await import(
        /* @vite-ignore */ withBase(theme.value.mermaid)
      )
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        theme: isDark.value ? "dark" : "neutral",
        themeVariables: {
          edgeLabelBackground: isDark.value ? "#1b1b1f" : "#ffffff",
          fontSize: "14px"
        }
      })
      drawn.value = readable((await mermaid.render(`diagram-${++drawings}`, code)).svg)
    }

    onMounted(() => {
      watch(isDark, draw, { immediate: true })
    })

    return () =>
      drawn.value === undefined
        ? h("pre", { class: "diagram" }, code)
        : h("div", { class: "diagram", innerHTML: drawn.value })
  }
})

/** Shows the remembered major in all tabs. Style rules hide the code of the other one. */
const showMajor = () => {
  const major = localStorage.getItem("effect") ?? "4"
  document.documentElement.dataset.effect = major
  for (const input of document.querySelectorAll(".majors input")) {
    input.checked = input.value === major
  }
}

/** Remembers the major of a tab. The tab stays where it is, although code above it may become longer or shorter. */
const chooseMajor = ({ target }) => {
  if (target.closest(".majors") === null) return
  const { top } = target.getBoundingClientRect()
  localStorage.setItem("effect", target.value)
  showMajor()
  scrollBy({ top: target.getBoundingClientRect().top - top, behavior: "instant" })
}

export default {
  extends: Theme,
  setup: () => {
    onContentUpdated(showMajor)
    onMounted(() => document.addEventListener("change", chooseMajor))
  },
  enhanceApp: ({ app }) => {
    app.component("Diagram", Diagram)
  }
}
