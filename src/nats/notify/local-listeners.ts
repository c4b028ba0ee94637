/** The listeners of one connection by their subjects: this process hears its own notification without a way over the server. */
export class LocalListeners {
  readonly #bySubject = new Map<string, Set<() => void>>();

  /** `subject` has no wildcard. Returns the function that removes the listener. */
  add(subject: string, listener: () => void): () => void {
    const listeners = this.#bySubject.get(subject) ?? new Set();
    this.#bySubject.set(subject, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#bySubject.get(subject) === listeners) this.#bySubject.delete(subject);
    };
  }

  notify(subject: string): void {
    for (const listener of this.#bySubject.get(subject) ?? []) listener();
  }
}
