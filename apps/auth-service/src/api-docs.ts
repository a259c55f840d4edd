import { OpenApi, conventions } from '@platform/open-api';
import { rejectionTable } from './token/token-response';

const DESCRIPTION = `Issues, exchanges and revokes the platform's access tokens, and answers who may do what.

## Getting a token

Against a platform in development (\`npm start\`), whose users all have the password \`Demo-Passw0rd!\`:

\`\`\`sh
curl -sS http://127.0.0.1:3001/auth/token/user -H 'Content-Type: application/json' -H 'X-Application-Key: demo-backend' \\
  -d '{"user":"ivy.internal","password":"Demo-Passw0rd!"}'
\`\`\`

Send the \`accessToken\` as \`Authorization: Bearer <ACCESS_TOKEN>\`. It lives for 24 hours; a \`refreshToken\` lives for 365 days, works once,
and is only for applications that may have one. Services and backends use a trust flow instead of a password.

## What token endpoints answer

Always a **TokenResponse**, a body that is not JSON included. Only outages (503) are problems. Which status goes with which reason:

${rejectionTable()}

Where a rate limit is configured, 429 with \`Retry-After\` and reason 7 says that the request came too soon.

Personas are bits that add up: 1 InternalPartner, 2 Customer, 4 ServiceProvider, 8 Resident, 16 Owner.

${conventions(', but for the refusals of the token endpoints')}`;

/** What the API document says of this service. */
export const API_DOCS = new OpenApi({
  description: DESCRIPTION,
  developmentUrl: 'http://127.0.0.1:3001',
  tags: [
    { name: 'Tokens', description: 'One endpoint for each way to prove who asks. Anonymous.' },
    { name: 'Obsolete token endpoints', description: 'They stay available and name their successors.' },
    { name: 'Revocations', description: 'What has been revoked, and revoking it.' },
    { name: 'Authorization queries', description: 'Who is in a group, and who may pass an access point.' },
    {
      name: 'Identity and keys',
      description: 'Who a token speaks for, and the keys that tokens are checked with.',
    },
    { name: 'Diagnostics', description: 'Whether the service answers, and its version.' },
    { name: 'Business units', description: 'A deprecated proxy: ask the customers service instead.' },
  ],
});
