import "./style.css"
import Theme from "vitepress/theme-without-fonts"
import { Diagram } from "./Diagram.mjs"

export default {
  extends: Theme,
  enhanceApp: ({ app }) => {
    app.component("Diagram", Diagram)
  }
}
