import {
  createCompletionReceiver,
  completionReceiverConfig,
} from './completions/completion-receiver.neighbour';
import { runNeighbour } from './neighbour/neighbour';

void runNeighbour(completionReceiverConfig, process.env, createCompletionReceiver);
