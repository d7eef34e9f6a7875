/**
 * A Mermaid diagram, drawn in the browser in the colours of the moment. Mermaid is loaded only on pages that have one;
 * until it is drawn, and without JavaScript, its text is shown.
 */
import { useData, withBase } from "vitepress"
import { defineComponent, h, onMounted, ref, watch } from "vue"

/** It shrinks with the page, but never so far that its letters could not be read. */
const readable = (svg) =>
  svg.replace(/max-width: ([\d.]+)px;/, (most, width) => `${most} min-width: ${Math.round(width * 0.7)}px;`)

/** Each drawing has a name of its own: Mermaid takes away what has the same one, also another that is being shown. */
let drawings = 0

export const Diagram = defineComponent({
  props: { code: { type: String, required: true } },
  setup: (props) => {
    const { isDark, theme } = useData()
    const code = decodeURIComponent(props.code)
    const drawn = ref()

    const draw = async () => {
      const { default: mermaid } = await import(/* @vite-ignore */ withBase(theme.value.mermaid))
      mermaid.initialize({
        startOnLoad: false,
        securityLevel: "strict",
        theme: isDark.value ? "dark" : "neutral",
        themeVariables: { edgeLabelBackground: isDark.value ? "#1b1b1f" : "#ffffff", fontSize: "14px" }
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
