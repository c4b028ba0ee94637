/** Throws at one of the calls, before or after its effect, and at every later one: the process is dead. */
export class Crash {
  #calls = 0;
  readonly #at: number;
  readonly #isAfterEffect: boolean;

  constructor(at: number, isAfterEffect: boolean) {
    this.#at = at;
    this.#isAfterEffect = isAfterEffect;
  }

  wrap<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const member = Reflect.get(object, name) as unknown;
        if (typeof member !== 'function') return member;
        const call = (args: unknown[]) => this.#call(() => Reflect.apply(member, object, args) as unknown);
        // As the real one: a caller may have several calls under way.
        const isAsync = Object.prototype.toString.call(member) === '[object AsyncFunction]';
        return isAsync ? async (...args: unknown[]) => call(args) : (...args: unknown[]) => call(args);
      },
    });
  }

  #call(effect: () => unknown): unknown {
    this.#calls += 1;
    if (this.#calls > this.#at || (this.#calls === this.#at && !this.#isAfterEffect)) throw new Error('killed');
    const result = effect();
    if (this.#calls !== this.#at || !(result instanceof Promise)) return result;
    return result.then(() => {
      throw new Error('killed');
    });
  }
}
