import { channel } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, constants } from 'node:http2';

const CREATED = 'http2.client.stream.created';

/**
 * Refuses answers to calls that were taken back before they had been written whole: Node then forgets the stream without telling the
 * server, makes another one of the answer that comes all the same, and gives it to nobody. An error of the connection would end the
 * process there, and a watch would be sent for ever. There is no other way to such a stream than the channel on which all are told;
 * what somebody asked for has no status in its headers yet.
 */
export class StrayAnswers implements Disposable {
  constructor() {
    channel(CREATED).subscribe(refuse);
  }

  /** Streams that were refused stay so. */
  [Symbol.dispose](): void {
    channel(CREATED).unsubscribe(refuse);
  }
}

function refuse(message: unknown): void {
  const { stream, headers } = message as { stream: ClientHttp2Stream; headers?: Record<string, unknown> };
  if (headers?.[constants.HTTP2_HEADER_STATUS] === undefined) return;
  stream.on('error', () => {});
  stream.close(constants.NGHTTP2_CANCEL);
}
