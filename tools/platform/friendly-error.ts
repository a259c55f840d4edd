/** An error whose message is all the user needs: shown without a stack. */
export class FriendlyError extends Error {
  override readonly name = 'FriendlyError';
}
