/** The versions of the protocol, the preferred one first. */
export const PROTOCOL_VERSIONS = ['1.0', '0.3'] as const;
/** The header of requests that names the version; answers vary by it. */
export const VERSION_HEADER = 'A2A-Version';
/** Of a body that is parsed already. */
export const A2A_LIMITS = { bodyBytes: 512 * 1_024, bodyValues: 10_000 } as const;
