/** The internet of the tests on real pods: addresses that look public, and that exist in the network namespace of the node only. */

export const PUBLIC_ADDRESS = '93.184.215.14';
export const METADATA_ADDRESS = '169.254.169.254';
/** Ports at which the program accepts every connection, and says that it did. */
export const OTHER_PORTS: readonly (readonly [address: string, port: number])[] = [
  [PUBLIC_ADDRESS, 80],
  [PUBLIC_ADDRESS, 8_443],
  [METADATA_ADDRESS, 80],
  [METADATA_ADDRESS, 443],
];
/** It serves one repository to everyone, and one to those with the token. */
export const GIT_HOST = 'git.example.com';
export const REPOSITORY_URL = `https://${GIT_HOST}/tools.git`;
export const PRIVATE_REPOSITORY_URL = `https://${GIT_HOST}/private.git`;
export const REPOSITORY_TOKEN = 'token-of-the-private-repository';
/** Its interface for pull requests, which Gitea has too, and the name of the private repository there. */
export const PULL_REQUEST_API = `https://${GIT_HOST}/api/v1`;
export const PULL_REQUEST_REPOSITORY = 'team/private';
/** It answers `/v1/rates` to those with the token. */
export const API_HOST = 'api.example.com';
export const SEARCH_HOST = 'search.example.com';
/** An MCP server that reads pages. */
export const MCP_HOST = 'mcp.example.com';
/** An agent that speaks A2A, with those that have the token. */
export const ARCHIVE_HOST = 'archive.example.com';
export const SERVICE_TOKEN = 'token-of-the-services';
/** Its name server gives the public address and the one inside in turn. */
export const REBINDING_HOST = 'rebinding.example.com';

/** What the program writes, one JSON object per line. */
export type InternetLine =
  | { event: 'query'; name: string }
  | { event: 'connection'; address: string; port: number }
  | { event: 'request'; host: string; path: string }
  | { event: 'closed'; path: string };
