import DataLoader from 'dataloader';
import { isStatementFailure } from './errors';

/** How many calls one statement answers at most, unless said otherwise. */
const MAX_BATCH = 32;

/**
 * A function whose calls of one turn of the event loop are answered together, e.g. by one statement. Nothing is kept: a call is
 * answered by a statement that begins after it, so that it sees every write acknowledged before. If PostgreSQL refuses to answer
 * them together, each is answered by itself: no caller can spoil another's answer.
 * @param answerAll gives the answers in the order of the questions, by one statement that is a transaction by itself
 */
export function together<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
  { maxBatch = MAX_BATCH }: { maxBatch?: number } = {},
): (question: Question) => Promise<Answer> {
  const answerAlone = async (question: Question): Promise<Answer | Error> => {
    try {
      const [answer] = await answerAll([question]);
      return answer as Answer;
    } catch (error) {
      return error instanceof Error ? error : new Error('failed', { cause: error });
    }
  };
  const loader = new DataLoader<Question, Answer>(
    async (questions) => {
      try {
        return await answerAll(questions);
      } catch (error) {
        if (questions.length === 1 || !isStatementFailure(error)) throw error;
        return Promise.all(questions.map(answerAlone));
      }
    },
    { cache: false, maxBatchSize: maxBatch, batchScheduleFn: (send) => setImmediate(send) },
  );
  return (question) => loader.load(question);
}
