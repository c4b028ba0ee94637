import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { TemperError } from '../../../lib/errors.ts';
import { infiniteNumberPath, type JsonExcess, JsonScanner } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { GatewayServer } from '../routes.ts';

/** Values of a body whose route states no other limit. */
const MAX_BODY_VALUES = 50_000;
/** Nesting depth of a body. Deeper nesting is an attempt to overflow the stack. */
const MAX_BODY_DEPTH = 100;
/** Characters of the name of a field in an error. */
const MAX_FIELD_CHARACTERS = 200;

/** Called with the size of each part of a body, as it arrives. */
export type CountBytes = (request: FastifyRequest, bytes: number) => void;

/** Parses the text of a body. Throws TEMPER_REQUEST_INVALID. */
export type ParseJson = (request: FastifyRequest, text: string) => Promise<unknown>;

/**
 * Reads bodies of `application/json`. Bytes, values and depth are counted as they arrive and before anything is parsed, so a body costs
 * memory only in proportion to its limits.
 */
export function addJsonBodies(server: GatewayServer, count: CountBytes): ParseJson {
  const parse = jsonParser(server);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', async (request: FastifyRequest, payload: IncomingMessage) => {
    const scanner = new JsonScanner(limitsOf(request));
    const body = await readBody(request, payload, (chunk) => {
      assertSimple(request, scanner.scan(chunk));
      count(request, chunk.length);
    });
    const text = body.toString('utf8');
    return request.routeOptions.config.rawBody === true ? text : parse(request, text);
  });
  return parse;
}

function jsonParser(server: GatewayServer): ParseJson {
  const parse = server.getDefaultJsonParser('error', 'error');
  return async (request, text) => {
    const parsed = Promise.withResolvers<unknown>();
    void parse(request, text, (error, body: unknown) => (error === null ? parsed.resolve(body) : parsed.reject(error)));
    const body = await parsed.promise;
    assertFinite(text, body);
    return body;
  };
}

/** Throws TEMPER_REQUEST_INVALID and TEMPER_REQUEST_TOO_LARGE for a text that would cost more than its route permits. */
export function assertParsable(request: FastifyRequest, text: Buffer): void {
  assertSimple(request, new JsonScanner(limitsOf(request)).scan(text));
}

function limitsOf({ routeOptions: { config } }: FastifyRequest): Record<JsonExcess, number> {
  return { values: config.maxValues ?? MAX_BODY_VALUES, depth: MAX_BODY_DEPTH };
}

function assertSimple(request: FastifyRequest, excess: JsonExcess | undefined): void {
  if (excess !== undefined) throw tooComplex(excess, limitsOf(request)[excess]);
}

function assertFinite(text: string, body: unknown): void {
  const path = infiniteNumberPath(text, body);
  if (path === undefined) return;
  const field = printable(`body${path.replaceAll('/', '.')}`, MAX_FIELD_CHARACTERS);
  throw new TemperError('TEMPER_REQUEST_INVALID', `${field} must be a number up to 1.7976931348623157e308`);
}

/** Throws as soon as the body exceeds a limit of its route; the rest is not read then. `onChunk` may throw too. */
export async function readBody(
  request: FastifyRequest,
  payload: IncomingMessage,
  onChunk: (chunk: Buffer) => void,
): Promise<Buffer> {
  const { bodyLimit } = request.routeOptions;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // Destroying the stream would close the connection before the response is sent.
    for await (const chunk of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bodyLimit) throw bodyTooLarge(bodyLimit);
      onChunk(chunk);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof TemperError) throw error;
    throw new TemperError('TEMPER_REQUEST_INVALID', 'the connection ended within the body', { cause: error });
  }
  return Buffer.concat(chunks, size);
}

export function bodyTooLarge(limit: number): TemperError {
  return new TemperError('TEMPER_REQUEST_TOO_LARGE', `the body exceeds the limit of this route, ${limit} bytes`);
}

function tooComplex(excess: JsonExcess, limit: number): TemperError {
  return excess === 'depth'
    ? new TemperError('TEMPER_REQUEST_INVALID', `the body is nested deeper than ${limit} levels`)
    : new TemperError('TEMPER_REQUEST_TOO_LARGE', `the body holds more than ${limit} values; send it in parts`);
}
