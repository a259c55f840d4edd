/** How to get an access token: for the descriptions of services that take them. Markdown. */
export const GETTING_A_TOKEN = `## Getting a token

Ask the authentication service and send the \`accessToken\` of its answer with every request. Against a platform in
development (\`npm start\`, authentication service on port 3001):

\`\`\`sh
ACCESS_TOKEN=$(curl -sS http://127.0.0.1:3001/auth/token/user -H 'Content-Type: application/json' \\
  -d '{"user":"ivy.internal","password":"Demo-Passw0rd!"}' | sed 's/.*"accessToken":"\\([^"]*\\)".*/\\1/')
\`\`\`

\`ivy.internal\` is an InternalPartner; \`carl.customer\` (Customer, facilities 501 and 502) and \`olga.owner\` (Owner, facility 501)
have the same password. A token lives for 24 hours.`;

// Markdown.
const CONVENTIONS = `## Conventions

- Paths match in any letter case and with or without a trailing slash; parameters keep their case.
- Every error is a problem (RFC 9457, \`application/problem+json\`)_EXCEPT_. Its \`traceId\` finds the request in the logs; send a
  W3C \`traceparent\` to choose it.
- Members may be added to answers at any time: pass over what you do not know.
- Every GET can be a HEAD.
- Instants are ISO 8601 with an offset.
- Any address may also answer, before an operation is found: 400 (the request or its address cannot be read), 404, 405 with \`Allow\`, 408 (it
  did not arrive within 60 s), 414 (a path parameter of more than 4,096 characters), 431 (headers of more than 32 KiB).`;

/** The conventions of a service. @param exception how errors of some operations differ, e.g. `, but for …`; none unless given */
export function conventions(exception = ''): string {
  return CONVENTIONS.replace('_EXCEPT_', exception);
}
