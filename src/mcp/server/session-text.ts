import type { ServedResources } from './served.ts';

const SESSIONS_URI = 'temper://sessions/';
export const SESSION_TYPE = 'text/plain';
const MAX_TEXT = 1_000_000;

/** What the URIs of the sessions of an agent have in common. */
export function sessionTemplate(agent: string): ServedResources['template'] {
  return {
    uriTemplate: `${SESSIONS_URI}{session}`,
    name: 'session',
    description: `A conversation of agent ${agent}: messages, calls and results`,
    mimeType: SESSION_TYPE,
  };
}

type SessionResource = Awaited<ReturnType<ServedResources['list']>>[number];

/** A session as a client lists it. */
export function sessionResource(
  session: string,
  about: Pick<SessionResource, 'title' | 'description'>,
): SessionResource {
  return { uri: `${SESSIONS_URI}${session}`, name: session, mimeType: SESSION_TYPE, ...about };
}

/** What a URI has in the place of the session, which the caller checks; empty for a URI of another form. */
export function sessionOf(uri: string): string {
  return uri.startsWith(SESSIONS_URI) ? uri.slice(SESSIONS_URI.length) : '';
}

/** The end of a text, for a client; holds no more than twice of what it gives. */
export class LastText {
  #text = '';
  #left = 0;

  add(text: string): void {
    this.#text += text;
    if (this.#text.length > 2 * MAX_TEXT) this.#cut();
  }

  toString(): string {
    this.#cut();
    return this.#left === 0 ? this.#text : `[the first ${this.#left} characters are left out]\n${this.#text}`;
  }

  #cut(): void {
    const excess = Math.max(0, this.#text.length - MAX_TEXT);
    this.#left += excess;
    this.#text = this.#text.slice(excess);
  }
}
