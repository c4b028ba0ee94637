export interface WebhookAddress {
  readonly namespace: string;
  readonly agent: string;
  readonly trigger: string;
  /** Where requests reach the webhooks of the release: `https://HOST`. */
  readonly url: string;
}

/** How to create the key of a webhook, and a request that is signed with it. The members are names, so that they need no quotes in a shell. */
export function webhookHelp(address: WebhookAddress): string {
  const { namespace, agent, trigger } = address;
  return `# The key of the webhook. To change it, write the new key into the first line and remove the old one later.
kubectl create secret generic temper-webhooks -n ${namespace} --from-literal=${agent}.${trigger}=whsec_$(openssl rand -base64 32)

# A signed request.
${signedRequest(address)}`;
}

/** A script for bash with kubectl, openssl and curl. */
export function signedRequest({ namespace, agent, trigger, url }: WebhookAddress): string {
  return `body='{"order":"A-7"}'
id=msg_$(openssl rand -hex 12)
time=$(date +%s)
key=$(kubectl get secret temper-webhooks -n ${namespace} -o 'go-template={{index .data "${agent}.${trigger}"}}' | base64 -d | head -n 1)
hex=$(printf %s "\${key#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf %s "$id.$time.$body" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$hex -binary | base64)
curl --fail-with-body -H 'content-type: application/json' -H "webhook-id: $id" -H "webhook-timestamp: $time" \\
  -H "webhook-signature: v1,$signature" --data-raw "$body" ${url}/v1/webhooks/${namespace}/${agent}/${trigger}
`;
}
