import { Difference, same } from './difference.ts';
import type { Answer } from './walk.ts';

/** Body of every token endpoint. */
interface TokenResponse {
  accessToken: string | null;
  refreshToken: string | null;
  rejectionReason: number;
  rejectionDetails: string | null;
  wasSuccessful: boolean;
}

/** The token of a successful answer. @throws {Difference} if the answer is anything else */
export function grantedTokens(answer: Answer): { accessToken: string; refreshToken: string | null } {
  same('the status', answer.status, 200);
  const body = answer.json as TokenResponse;
  same('wasSuccessful', body.wasSuccessful, true);
  same('rejectionReason', body.rejectionReason, 0);
  if (typeof body.accessToken !== 'string')
    throw new Difference('accessToken', 'a token', String(body.accessToken));
  return { accessToken: body.accessToken, refreshToken: body.refreshToken };
}

/** @throws {Difference} unless the answer is a refusal with this status and reason, and no token in it */
export function refusedWith(answer: Answer, status: number, rejectionReason: number): void {
  same('the status', answer.status, status);
  const body = answer.json as TokenResponse;
  same('rejectionReason', body.rejectionReason, rejectionReason);
  same('wasSuccessful', body.wasSuccessful, false);
  same('accessToken', body.accessToken, null);
}
