/** A kubelet replaces a token after 80 percent of its lifetime, which is an hour. */
const RENEW_AFTER_MS = 48 * 60_000;

/** A token that is requested again before it expires. While the request fails, the token before stays in use. */
export class RenewedToken {
  readonly #request: () => Promise<string>;
  #token: string;
  #renewAt: number;

  private constructor(request: () => Promise<string>, token: string) {
    this.#request = request;
    this.#token = token;
    this.#renewAt = performance.now() + RENEW_AFTER_MS;
  }

  static async open(request: () => Promise<string>): Promise<RenewedToken> {
    return new RenewedToken(request, await request());
  }

  /** A token that was just requested. */
  static of(token: string, request: () => Promise<string>): RenewedToken {
    return new RenewedToken(request, token);
  }

  async current(): Promise<string> {
    if (performance.now() < this.#renewAt) return this.#token;
    try {
      this.#token = await this.#request();
      this.#renewAt = performance.now() + RENEW_AFTER_MS;
    } catch {
      // The API server is away; the next call asks again.
    }
    return this.#token;
  }
}
