/** `work`, or the rejection with `tooLate()` once `timeoutMs` have passed; work that ends later is ignored. */
export async function within<T>(work: Promise<T>, timeoutMs: number, tooLate: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate()), timeoutMs);
  });
  try {
    return await Promise.race([work, silence]);
  } finally {
    clearTimeout(timer);
  }
}
