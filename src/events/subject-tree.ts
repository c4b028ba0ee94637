interface Node<T> {
  readonly children: Map<string, Node<T>>;
  readonly values: Set<T>;
}

/**
 * Values by their subject patterns. A look-up follows the tokens of one subject through the tree, so it costs what the subject and its matches
 * cost, however many patterns there are.
 */
export class SubjectTree<T> {
  readonly #root: Node<T> = newNode();

  add(pattern: string, value: T): void {
    let node = this.#root;
    for (const token of pattern.split('.')) {
      const child = node.children.get(token) ?? newNode<T>();
      node.children.set(token, child);
      node = child;
    }
    node.values.add(value);
  }

  /** Idempotent. */
  remove(pattern: string, value: T): void {
    const path: { parent: Node<T>; token: string }[] = [];
    let node = this.#root;
    for (const token of pattern.split('.')) {
      const child = node.children.get(token);
      if (child === undefined) return;
      path.push({ parent: node, token });
      node = child;
    }
    node.values.delete(value);
    for (const { parent, token } of path.reverse()) {
      const child = parent.children.get(token);
      if (child === undefined || child.values.size > 0 || child.children.size > 0) return;
      parent.children.delete(token);
    }
  }

  get isEmpty(): boolean {
    return this.#root.children.size === 0;
  }

  /** The values whose patterns match the subject, each once. */
  match(subject: string): T[] {
    const found = new Set<T>();
    const tokens = subject.split('.');
    let level: Node<T>[] = [this.#root];
    for (const token of tokens) {
      const next: Node<T>[] = [];
      for (const { children } of level) {
        children.get('>')?.values.forEach((value) => found.add(value));
        for (const child of [children.get(token), children.get('*')]) if (child !== undefined) next.push(child);
      }
      level = next;
    }
    for (const { values } of level) values.forEach((value) => found.add(value));
    return [...found];
  }
}

function newNode<T>(): Node<T> {
  return { children: new Map(), values: new Set() };
}
