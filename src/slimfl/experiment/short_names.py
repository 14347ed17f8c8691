"""Other names of keys: short ones, and those that other libraries use, which are only suggested."""

from __future__ import annotations

#: The key of every short name, in Python and on the command line: `alpha`, `--alpha`.
SHORT_NAMES = {
    "algorithm": "training.algorithm",
    "alpha": "data.alpha",
    "batch_size": "training.batch_size",
    "channel": "radio.channel",
    "data_dir": "data.dir",
    "dataset": "data.dataset",
    "devices": "federation.devices",
    "epochs": "training.epochs",
    "learning_rate": "training.learning_rate",
    "noise_dbm": "radio.noise_dbm",
    "participation": "federation.participation",
    "partition": "data.partition",
    "split": "radio.split",
    "steps": "training.steps",
    "widths": "model.widths",
}

#: What users of Flower, pfl-research, Keras, PyTorch and Hugging Face write, by our key.
_ELSEWHERE = {
    "method": "scaffold fedavg federated_averaging strategy algorithm_name aggregation aggregator",
    "seed": "random_seed random_state manual_seed data_seed",
    "rounds": "num_rounds n_rounds num_server_rounds server_rounds global_rounds comm_rounds "
    "communication_rounds central_num_iterations num_iterations iterations global_epochs",
    "engine": "backend",
    "device": "num_gpus gpus n_gpus use_cpu gpu use_gpu use_cuda cuda accelerator no_cuda",
    "threads": "workers n_workers max_workers dataloader_num_workers num_threads n_jobs "
    "num_workers num_cpus client_resources",
    "callbacks": "patience early_stopping_patience callback early_stopping",
    "stages": "quantization quantisation compression sparsity topk top_k",
    "track": "tracker trackers report_to logger loggers log_with tensorboard wandb mlflow",
    "data.dataset": "data dataset_name train_dataset",
    "data.dir": "data_path data_root root dataset_path",
    "data.partition": "partitioner iid non_iid noniid federated_dataset",
    "data.alpha": "dirichlet dirichlet_alpha concentration dir_alpha beta",
    "data.min_samples": "min_partition_size",
    "data.train_samples": "max_train_samples",
    "data.test_samples": "max_eval_samples max_test_samples",
    "model.name": "model net network arch architecture model_name model_name_or_path",
    "model.widths": "width slim_rates width_mult width_mult_list",
    "model.initialisation": "initialization initializer kernel_initializer init",
    "training.optimiser": "optimizer optim opt client_optimizer local_optimizer",
    "training.learning_rate": "eta_l lr eta client_lr local_lr local_learning_rate "
    "client_learning_rate step_size learn_rate base_lr",
    "training.schedule": "scheduler lr_scheduler lr_scheduler_type lr_schedule",
    "training.weight_decay": "wd decay l2",
    "training.betas": "adam_beta1 adam_beta2 beta_1 beta_2",
    "training.batch_size": "b local_bs bs batch local_batch_size per_device_train_batch_size "
    "train_batch_size client_batch_size minibatch_size",
    "training.epochs": "e local_ep epoch local_epochs num_epochs n_epochs nb_epoch "
    "num_train_epochs local_num_epochs client_epochs max_epochs",
    "training.steps": "steps_per_epoch max_steps local_steps num_steps local_num_steps",
    "training.proximal_mu": "fedprox mu prox_mu",
    "radio.noise_dbm": "snr snr_db noise noise_power noise_power_dbm",
    "radio.power_dbm": "power tx_power tx_power_dbm transmit_power",
    "radio.distance_m": "distance",
    "radio.bandwidth_hz": "bandwidth",
    "radio.carrier_hz": "carrier_frequency fc",
    "radio.fading": "rayleigh",
    "radio.speed_m_s": "speed velocity",
    "radio.max_attempts": "retransmissions retries harq",
    "federation.devices": "k min_available_nodes min_num_clients clients num_clients n_clients "
    "num_supernodes num_partitions num_devices num_users users num_nodes population_size "
    "min_available_clients total_clients",
    "federation.participation": "c fraction_clients train_cohort_size fraction_fit "
    "fraction_train fraction client_fraction frac sample_fraction clients_per_round cohort_size "
    "min_fit_clients min_train_nodes",
    "federation.evaluate_every": "eval_strategy evaluation_strategy evaluation_frequency "
    "eval_steps eval_every validation_freq eval_interval",
    "federation.checkpoint_every": "save_strategy save_steps save_freq save_every "
    "checkpoint_interval",
    "server.optimiser": "fedyogi fedadagrad fedadam fedavgm fedopt server_optimizer "
    "central_optimizer",
    "server.learning_rate": "server_lr central_lr central_learning_rate global_lr",
    "server.momentum": "server_momentum",
    "population.classes": "availability",
    "time.mode": "async asynchronous stragglers",
    "time.buffer": "buffer_size",
    "time.staleness_exponent": "staleness",
    "privacy.clip_norm": "clipping_norm clipping_bound max_grad_norm dp_clip dp",
    "privacy.noise_multiplier": "central_epsilon noise_scale sigma epsilon target_epsilon",
    "privacy.delta": "target_delta",
    "flower.round_timeout_s": "round_timeout timeout",
}
HINTS = {word: key for key, words in _ELSEWHERE.items() for word in words.split()}


def meant(word: str) -> str | None:
    """The key that a word of another library stands for, however it is written.

    >>> meant("--num-clients"), meant("LR"), meant("alpha"), meant("foo")
    ('federation.devices', 'training.learning_rate', 'data.alpha', None)
    """
    plain = word.strip("-").replace("-", "_").lower()
    return HINTS.get(plain, SHORT_NAMES.get(plain))


def short_name(dotted: str) -> str:
    """The short name of a key, or the key itself.

    >>> short_name("data.alpha"), short_name("data.min_samples")
    ('alpha', 'data.min_samples')
    """
    return next((short for short, long in SHORT_NAMES.items() if long == dotted), dotted)
