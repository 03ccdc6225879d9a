// Every text of the page: [English, Chinese]. Values are put in for {name}.

const TEXTS = {
  // the frame
  "nav": ["Panels", "面板"],
  "skip": ["Skip to the content", "跳到内容"],
  "theme": ["Colours", "配色"],
  "theme.auto": ["System colours", "跟随系统"],
  "theme.light": ["Light", "浅色"],
  "theme.dark": ["Dark", "深色"],
  "language": ["Language", "语言"],
  "sign-out": ["Sign out", "退出"],
  "sign-in.title": ["Sign in", "登录"],
  "sign-in.how": ["Run this command; it opens the page with a code for one sign-in.",
    "运行此命令，它会用一次性代码打开本页面。"],
  "sign-in.code": ["Or paste the code or link here", "或在此粘贴代码或链接"],
  "sign-in.submit": ["Sign in", "登录"],
  "error.code": ["Code: {code}", "代码：{code}"],
  "unreachable": ["byok does not answer.", "byok 没有响应。"],
  "unreachable.hint": ["Is it running? byok status tells.", "它在运行吗？用 byok status 查看。"],
  "none": ["There is nothing to show.", "没有可显示的内容。"],
  "unknown": ["unknown", "未知"],

  // panels/overview.js
  "overview.title": ["Overview", "概览"],
  "overview.version": ["Version", "版本"],

  // panels/live.js
  "live.title": ["Live", "实时"],

  // panels/usage.js
  "usage.title": ["Tokens and cost", "用量与费用"],

  // panels/conversations.js
  "conversations.title": ["Conversations", "对话"],

  // panels/problems.js
  "problems.title": ["Repairs and errors", "修复与错误"],

  // panels/index.js
  "index.title": ["Index", "索引"],

  // panels/search.js
  "search.title": ["Code search", "代码搜索"],

  // panels/settings.js
  "settings.title": ["Settings", "设置"],
};

const KEY = "byok-language";

// Return "en" or "zh": what the user chose, else what the browser prefers.
export function language() {
  const chosen = localStorage.getItem(KEY);
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const setLanguage = (name) => localStorage.setItem(KEY, name);

// Return a text in the page's language.
export function t(key, values = {}) {
  const [english, chinese] = TEXTS[key];
  const text = language() === "zh" ? chinese : english;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
