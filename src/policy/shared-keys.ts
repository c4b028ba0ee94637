/** `shared` and the keys below it belong to all agents of a namespace, all others to one agent. */
export function isSharedKey(key: string): boolean {
  return key === 'shared' || key.startsWith('shared.');
}
