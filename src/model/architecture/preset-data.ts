// Written by scripts/presets.js from the files of configs: npm run presets.
import type { Preset } from './family.js';

export const PRESETS: Readonly<Record<string, readonly Preset[]>> = {
"falcon_h1": [
{"name":"falcon-h1-0.5b","title":"Falcon-H1-0.5B: 521M","document":{"model":{"family":"falcon_h1","vocab_size":32784,"hidden_size":1024,"intermediate_size":2048,"num_hidden_layers":36,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":64,"max_position_embeddings":16384,"rope_theta":100000000000,"mamba_n_heads":24,"mamba_d_state":128,"mamba_d_ssm":1536,"embedding_multiplier":5.656854249492381,"lm_head_multiplier":0.0390625,"mlp_multipliers":[0.8838834764831844,0.5859375],"key_multiplier":0.39062499999999994,"attention_out_multiplier":0.9375,"ssm_in_multiplier":1.25,"ssm_out_multiplier":0.23570226039551587,"ssm_multipliers":[0.3535533905932738,0.25,0.3535533905932738,0.5,0.3535533905932738]}}},
],
"gemma3_text": [
{"name":"gemma-3-270m","title":"Gemma 3 270M: 268M","document":{"model":{"family":"gemma3_text","vocab_size":262144,"hidden_size":640,"intermediate_size":2048,"num_hidden_layers":18,"num_attention_heads":4,"num_key_value_heads":1,"max_position_embeddings":32768,"sliding_window":512}}},
{"name":"gemma-3-1b","title":"Gemma 3 1B: 1.00B","document":{"model":{"family":"gemma3_text","vocab_size":262144,"hidden_size":1152,"intermediate_size":6912,"num_hidden_layers":26,"num_attention_heads":4,"num_key_value_heads":1,"max_position_embeddings":32768,"sliding_window":512}}},
],
"gemma4_text": [
{"name":"gemma-4-26b-a4b","title":"Gemma 4 26B A4B, text: 25.2B","document":{"model":{"family":"gemma4_text","vocab_size":262144,"hidden_size":2816,"intermediate_size":2112,"num_hidden_layers":30,"num_attention_heads":16,"num_key_value_heads":8,"max_position_embeddings":262144,"sliding_window":1024,"hidden_size_per_layer_input":0,"num_global_key_value_heads":2,"attention_k_eq_v":true,"final_logit_softcapping":30,"enable_moe_block":true,"num_experts":128,"top_k_experts":8,"moe_intermediate_size":704}}},
{"name":"gemma-4-e2b","title":"Gemma 4 E2B, text: 4.63B","document":{"model":{"family":"gemma4_text","vocab_size":262144,"hidden_size":1536,"intermediate_size":6144,"num_hidden_layers":35,"num_attention_heads":8,"num_key_value_heads":1,"layer_types":["sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention","sliding_attention","sliding_attention","sliding_attention","sliding_attention","full_attention"],"num_kv_shared_layers":20,"use_double_wide_mlp":true,"final_logit_softcapping":30}}},
],
"gpt2": [
{"name":"gpt2","title":"GPT-2: 124M","document":{"model":{"family":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12}}},
],
"gpt_oss": [
{"name":"gpt-oss-20b","title":"gpt-oss-20b: 20.9B","document":{"model":{"family":"gpt_oss","vocab_size":201088,"hidden_size":2880,"intermediate_size":2880,"num_hidden_layers":24,"num_attention_heads":64,"num_key_value_heads":8,"rope_scaling":{"rope_type":"yarn","factor":32,"original_max_position_embeddings":4096,"beta_fast":32,"beta_slow":1,"truncate":false},"num_local_experts":32},"quantization_config":{"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","model.layers.*.mlp.router","model.embed_tokens","lm_head"]}}},
],
"granitemoehybrid": [
{"name":"granite-4.0-h-350m","title":"Granite 4.0 H 350M: 340M","document":{"model":{"family":"granitemoehybrid","vocab_size":100352,"hidden_size":768,"shared_intermediate_size":2048,"num_local_experts":0,"num_experts_per_tok":0,"num_hidden_layers":32,"layer_types":["linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention"],"num_attention_heads":12,"num_key_value_heads":4,"mamba_n_heads":48,"mamba_d_head":32,"mamba_d_state":128,"mamba_n_groups":1,"max_position_embeddings":32768,"rms_norm_eps":0.00001,"embedding_multiplier":12,"attention_multiplier":0.015625,"residual_multiplier":0.246,"logits_scaling":3,"tie_word_embeddings":true}}},
{"name":"granite-4.0-h-tiny","title":"Granite 4.0 H Tiny: 6.94B","document":{"model":{"family":"granitemoehybrid","vocab_size":100352,"hidden_size":1536,"intermediate_size":512,"num_hidden_layers":40,"num_attention_heads":12,"num_key_value_heads":4,"max_position_embeddings":131072,"rms_norm_eps":0.00001,"mamba_n_heads":48,"mamba_d_state":128,"layer_types":["linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","linear_attention","full_attention","linear_attention","linear_attention","linear_attention","linear_attention"],"num_local_experts":64,"num_experts_per_tok":6,"embedding_multiplier":12,"attention_multiplier":0.0078125,"residual_multiplier":0.22,"logits_scaling":6,"tie_word_embeddings":true}}},
],
"hybrid": [
{"name":"original","title":"Every layer has its own SRTE table","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":65536,"srte_encoding":"learnable","srte_share_across_layers":false,"srte_factorized_rank":0,"tie_word_embeddings":false}}},
{"name":"shared","title":"One SRTE table for all layers","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":65536,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":0,"tie_word_embeddings":false}}},
{"name":"rank-128","title":"One SRTE of rank 128 for all layers","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":65536,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":128,"tie_word_embeddings":false}}},
{"name":"rank-64","title":"One SRTE of rank 64 for all layers","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":65536,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":64,"tie_word_embeddings":false}}},
{"name":"sincos","title":"Sines and cosines: an SRTE without parameters","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":65536,"srte_encoding":"sincos","srte_share_across_layers":true,"tie_word_embeddings":false}}},
{"name":"recommended","title":"Shared, rank 128, 32,768 positions, tied head","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":32768,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":128,"tie_word_embeddings":true}}},
{"name":"aggressive","title":"For the smallest size: 24 layers of 2048, rank 64","document":{"model":{"vocab_size":50432,"hidden_size":2048,"num_layers":24,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":32768,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":64,"tie_word_embeddings":true}}},
{"name":"memory","title":"For little memory: sincos, 16,384 positions","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":16384,"srte_encoding":"sincos","srte_share_across_layers":true,"tie_word_embeddings":true}}},
{"name":"performance","title":"For quality: 65,536 positions, rank 256","document":{"model":{"vocab_size":50432,"hidden_size":4096,"num_layers":32,"num_heads":32,"window_size":1024,"global_heads":2,"gate_rank":256,"max_position_embeddings":65536,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":256,"tie_word_embeddings":true}}},
{"name":"bench-60m","title":"A size for measuring forward passes","document":{"model":{"vocab_size":6400,"hidden_size":512,"num_layers":8,"num_heads":8,"window_size":256,"global_heads":2,"gate_rank":64,"max_position_embeddings":2048,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":0,"tie_word_embeddings":false}}},
{"name":"tiny","title":"Small enough to run anywhere: for tests and first steps","document":{"model":{"vocab_size":256,"hidden_size":64,"num_layers":2,"num_heads":4,"window_size":32,"global_heads":1,"gate_rank":16,"max_position_embeddings":256,"srte_encoding":"learnable","srte_share_across_layers":true,"srte_factorized_rank":8,"tie_word_embeddings":true}}},
],
"lfm2": [
{"name":"lfm2-350m","title":"LFM2-350M: 354M","document":{"model":{"family":"lfm2","vocab_size":65536,"hidden_size":1024,"intermediate_size":6656,"num_hidden_layers":16,"num_attention_heads":16,"num_key_value_heads":8,"full_attn_idxs":[2,5,8,10,12,14]}}},
{"name":"lfm2-1.2b","title":"LFM2-1.2B: 1.17B","document":{"model":{"family":"lfm2","vocab_size":65536,"hidden_size":2048,"intermediate_size":12288,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"full_attn_idxs":[2,5,8,10,12,14]}}},
],
"llama": [
{"name":"smollm2-135m","title":"SmolLM2-135M: 135M","document":{"model":{"family":"llama","vocab_size":49152,"hidden_size":576,"intermediate_size":1536,"num_hidden_layers":30,"num_attention_heads":9,"num_key_value_heads":3,"max_position_embeddings":8192,"rope_theta":100000,"rms_norm_eps":0.00001,"tie_word_embeddings":true}}},
{"name":"llama-3.2-1b","title":"Llama 3.2 1B: 1.24B","document":{"model":{"family":"llama","vocab_size":128256,"hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":131072,"rope_theta":500000,"rope_scaling":{"rope_type":"llama3","factor":32,"original_max_position_embeddings":8192,"low_freq_factor":1,"high_freq_factor":4},"rms_norm_eps":0.00001,"tie_word_embeddings":true}}},
],
"mamba": [
{"name":"mamba-130m","title":"Mamba-130M","document":{"model":{"family":"mamba","vocab_size":50280,"hidden_size":768,"num_hidden_layers":24,"state_size":16}}},
],
"mamba2": [
{"name":"mamba2-130m","title":"Mamba2-130M","document":{"model":{"family":"mamba2","vocab_size":50288,"hidden_size":768,"num_hidden_layers":24,"num_heads":24,"head_dim":64,"state_size":128,"n_groups":1,"tie_word_embeddings":true}}},
],
"minigpt": [
{"name":"minigpt-tiny","title":"MiniGPT tiny: 2.8M","document":{"model":{"family":"minigpt","vocab_size":10000,"hidden_size":128,"num_hidden_layers":8,"num_attention_heads":4,"num_key_value_heads":1,"intermediate_size":384,"max_position_embeddings":512}}},
{"name":"minigpt-small","title":"MiniGPT small: 29.5M","document":{"model":{"family":"minigpt","vocab_size":10000,"hidden_size":384,"num_hidden_layers":12,"num_attention_heads":12,"num_key_value_heads":3,"intermediate_size":1536,"max_position_embeddings":1024}}},
{"name":"minigpt-medium","title":"MiniGPT medium: 112M","document":{"model":{"family":"minigpt","vocab_size":20000,"hidden_size":640,"num_hidden_layers":20,"num_attention_heads":16,"num_key_value_heads":4,"intermediate_size":2048,"max_position_embeddings":2048}}},
{"name":"minigpt-large","title":"MiniGPT large: 298M","document":{"model":{"family":"minigpt","vocab_size":32000,"hidden_size":768,"num_hidden_layers":32,"num_attention_heads":24,"num_key_value_heads":6,"intermediate_size":3072,"max_position_embeddings":4096}}},
],
"minimind": [
{"name":"minimind2-small","title":"MiniMind2-Small: 25.8M","document":{"model":{"family":"minimind","version":2,"hidden_size":512,"num_hidden_layers":8}}},
{"name":"minimind2","title":"MiniMind2: 104M","document":{"model":{"family":"minimind","version":2,"hidden_size":768,"num_hidden_layers":16}}},
{"name":"minimind2-moe","title":"MiniMind2-MoE: 145M, of which a token uses 92M","document":{"model":{"family":"minimind","version":2,"hidden_size":640,"num_hidden_layers":8,"use_moe":true}}},
{"name":"minimind-3","title":"MiniMind-3: 63.9M","document":{"model":{"family":"minimind","version":3,"hidden_size":768,"num_hidden_layers":8}}},
{"name":"minimind-3-moe","title":"MiniMind-3-MoE: 198M, of which a token uses 64M","document":{"model":{"family":"minimind","version":3,"hidden_size":768,"num_hidden_layers":8,"use_moe":true}}},
{"name":"minimind-v1-small","title":"MiniMind-V1-Small: 26.9M","document":{"model":{"family":"minimind","version":2,"hidden_size":512,"num_hidden_layers":8,"num_attention_heads":16,"num_key_value_heads":8,"rope_theta":10000}}},
],
"olmo3": [
{"name":"olmo-3-7b","title":"OLMo 3 7B: 7.30B","document":{"model":{"family":"olmo3","vocab_size":100278,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":65536,"rope_scaling":{"rope_type":"yarn","factor":8,"original_max_position_embeddings":8192,"beta_fast":32,"beta_slow":1,"attention_factor":1.2079441541679836},"rms_norm_eps":0.000001}}},
],
"opt": [
{"name":"opt-125m","title":"OPT-125M","document":{"model":{"family":"opt","vocab_size":50272,"hidden_size":768,"ffn_dim":3072,"num_hidden_layers":12,"num_attention_heads":12,"max_position_embeddings":2048}}},
],
"phi": [
{"name":"phi-2","title":"Phi-2: 2.78B","document":{"model":{"family":"phi","vocab_size":51200,"hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":32,"num_attention_heads":32,"partial_rotary_factor":0.4}}},
],
"qwen3": [
{"name":"qwen3-0.6b","title":"Qwen3-0.6B: 596M","document":{"model":{"family":"qwen3","vocab_size":151936,"hidden_size":1024,"intermediate_size":3072,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":8,"max_position_embeddings":40960,"rope_theta":1000000,"tie_word_embeddings":true}}},
],
"qwen3_5_text": [
{"name":"qwen3.5-0.8b","title":"Qwen3.5-0.8B, text: 752M","document":{"model":{"family":"qwen3_5_text","vocab_size":248320,"hidden_size":1024,"intermediate_size":3584,"num_hidden_layers":24,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":256,"linear_num_key_heads":16,"linear_num_value_heads":16,"rope_theta":10000000,"tie_word_embeddings":true}}},
],
"qwen3_next": [
{"name":"qwen3-next-80b-a3b","title":"Qwen3-Next 80B A3B: 79.7B","document":{"model":{"family":"qwen3_next","vocab_size":151936,"hidden_size":2048,"intermediate_size":5120,"num_hidden_layers":48,"num_attention_heads":16,"num_key_value_heads":2,"max_position_embeddings":262144,"rope_theta":10000000}}},
],
};
