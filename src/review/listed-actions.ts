/** Uses of the tool, but not its calls: a chain has one record per call. */
const LEFT_OUT: ReadonlySet<string> = new Set(['tool.called', 'tool.call-failed']);

/** Does the page list records with this action? */
export function isListedAction(action: string): boolean {
  return !LEFT_OUT.has(action);
}
