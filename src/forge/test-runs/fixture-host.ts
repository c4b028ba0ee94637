import { sha256 } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { isJsonObject, type Json, member } from '../../lib/json.ts';
import type { HostCalls } from '../../sandbox/port.ts';
import type { TestCase } from '../request.ts';
import { FixtureResponder } from './fixture-responder.ts';

/** The fixture name of each host function. */
const HOST_FIXTURES = { fetch: 'fetch', 'fs.readFile': 'fs_read_file' } as const;

/**
 * Answers host calls of a test from its fixtures, in the form of real answers: a tool that could tell the two apart could
 * behave in its tests and misbehave in use.
 */
export function fixtureHost(test: TestCase, host: HostCalls, clock: Clock): HostCalls {
  const fixtures = new FixtureResponder(test.fixtures);
  return {
    async call(api, input, op) {
      const fixture = fixtures.outputFor(HOST_FIXTURES[api], input, true);
      if (fixture === undefined) return host.call(api, input, op);
      return api === 'fetch' ? responseOf(fixture.output, input, clock) : textOf(fixture.output);
    },
  };
}

function responseOf(output: Json, input: Json, clock: Clock): Json {
  const given = isJsonObject(output) ? output : { body: output };
  const { status, headers, url, redirected } = given;
  const body = textOf(given['body'] ?? '');
  const requested = textOf(member(input, 'url') ?? '');
  return {
    status: Number.isInteger(status) ? (status as number) : 200,
    headers: { ...usualHeaders(body, clock), ...namedHeaders(headers) },
    url: typeof url === 'string' ? url : (URL.parse(requested)?.href ?? requested),
    redirected: redirected === true,
    body,
  };
}

/** The headers that nearly every server sends and that a tool may read. */
function usualHeaders(body: string, clock: Clock): Record<string, string> {
  const kind = /^\s{0,8}[{[]/.test(body) ? 'application/json' : /^\s{0,8}</.test(body) ? 'text/html' : 'text/plain';
  return {
    'cache-control': 'max-age=0, private, must-revalidate',
    'content-type': `${kind}; charset=utf-8`,
    date: clock.now().toUTCString(),
    etag: `W/"${sha256(body).slice('sha256:'.length, 'sha256:'.length + 32)}"`,
  };
}

/** Headers of a fixture in the form of a real response: lower-case names, values as text. */
function namedHeaders(headers: Json | undefined): Record<string, string> {
  if (!isJsonObject(headers)) return {};
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), textOf(value)]));
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
